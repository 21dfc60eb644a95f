"""What the advice gains over the user's own model, one dot per condition: docs/figures/gain.png.

    python -m research.gain_figure

The advice is chosen without the condition's own network (architecture left out). Gray: the advice is to leave the model alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.advising import (
    CANDIDATES,
    LEAVE,
    SHIPS,
    TUNED,
    at_tuned,
    left_out,
    picked,
    with_gains,
)
from research.running import exported
from research.user_gains import MOST, STORE, noise, table
from tstar.lab.report.style import BLUE, FAINT, INK, look

FILE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "gain.png"
EDGE = 15.0  # points; what is further out is drawn there as a triangle


def main() -> None:
    import matplotlib.pyplot as plt

    rows = with_gains(table(exported(STORE)))
    rows = rows[rows["norms"] != "pretrained"].reset_index(drop=True)
    tuned = at_tuned(rows)
    advised, told = left_out(rows, CANDIDATES[SHIPS], "network"), left_out(tuned, TUNED[SHIPS], "network")  # fmt: skip
    networks = picked(rows, advised).clip(-MOST, MOST).groupby(rows["network"]).mean().sort_values().index  # fmt: skip
    with look():
        figure, (above, below) = plt.subplots(2, 1, figsize=(7.2, 5.6), sharex=True, layout="constrained")  # fmt: skip
        _panel(above, rows, advised, networks, "points over your model\nat its usual rate")
        _panel(below, tuned, told, networks, "points over your model,\ntuned (tuned=True)")
        below.set_xticks(range(len(networks)), networks, rotation=30, ha="right")
        above.legend(loc="upper left", ncols=2, fontsize=7)
        figure.savefig(FILE, dpi=160)


def _panel(axes: Any, rows: pd.DataFrame, advised: pd.Series, networks: Iterable[str], label: str) -> None:  # fmt: skip
    """One dot per training, by network, over the noise; a bar for the mean of each."""
    gains = picked(rows, advised).to_numpy()
    width = 2 * noise(rows) / math.sqrt(2)
    random = np.random.default_rng(0)
    axes.axhspan(-width, width, color=FAINT, alpha=0.5, lw=0, label="noise (two standard deviations)")  # fmt: skip
    axes.axhline(0, color=INK, lw=0.8)
    for place, network in enumerate(networks):
        mine = (rows["network"] == network).to_numpy()
        across = place + random.uniform(-0.25, 0.25, mine.sum())
        left = (advised[mine] == LEAVE).to_numpy()
        values = gains[mine]
        shown = np.abs(values) <= EDGE
        axes.plot(across[left], values[left], "o", color=INK, alpha=0.25, ms=4, mew=0)
        for which, mark in ((shown, "o"), (values > EDGE, "^"), (values < -EDGE, "v")):
            some = which & ~left
            heights = np.clip(values[some], -EDGE, EDGE)
            axes.plot(across[some], heights, mark, color=BLUE, ms=4, mew=0)
        mean = np.clip(values, -MOST, MOST).mean()
        axes.plot([place - 0.35, place + 0.35], [mean, mean], color=INK, lw=2)
    axes.set_ylabel(label)
    axes.plot([], [], "o", color=BLUE, ms=4, label="changed as advised")
    axes.plot([], [], "o", color=INK, alpha=0.25, ms=4, label="advised to leave it")
    axes.plot(
        [],
        [],
        "^",
        color=BLUE,
        ms=4,
        mew=0,
        label=f"beyond {EDGE:.0f} (highest: {np.nanmax(gains):.0f})",
    )
    axes.plot([], [], color=INK, lw=2, label=f"mean (gains held within ±{MOST:.0f})")
    axes.set_ylim(max(-EDGE, float(np.nanmin(gains))) - 1, EDGE + 6)


if __name__ == "__main__":
    main()
