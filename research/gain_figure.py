"""What the advice gains over the user's own model, one dot per condition: docs/figures/gain.png.

    python -m research.gain_figure

The advice is chosen without the condition's own network (architecture left out). Gray: the advice is to leave the model alone.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from research.advising import CANDIDATES, SHIPS, left_out, picked, with_gains
from research.user_gains import MOST, load, noise, table
from tstar.report.style import BLUE, FAINT, INK, look

FILE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "gain.png"
EDGE = 15.0  # points; what is further out is drawn there as a triangle


def main() -> None:
    import matplotlib.pyplot as plt

    rows = with_gains(table(load()))
    rows = rows[rows["norms"] != "pretrained"].reset_index(drop=True)
    advised = left_out(rows, CANDIDATES[SHIPS], "network")
    gains = picked(rows, advised).to_numpy()
    held = rows.assign(gain=np.clip(gains, -MOST, MOST))
    networks = held.groupby("network")["gain"].mean().sort_values().index
    width = 2 * noise(rows) / math.sqrt(2)
    random = np.random.default_rng(0)
    with look():
        figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
        axes.axhspan(-width, width, color=FAINT, alpha=0.5, lw=0, label="noise (two standard deviations)")  # fmt: skip
        axes.axhline(0, color=INK, lw=0.8)
        for place, network in enumerate(networks):
            mine = (rows["network"] == network).to_numpy()
            across = place + random.uniform(-0.25, 0.25, mine.sum())
            left = (advised[mine] == "leave").to_numpy()
            values = gains[mine]
            shown = np.abs(values) <= EDGE
            axes.plot(across[left], values[left], "o", color=INK, alpha=0.25, ms=4, mew=0)
            for which, mark in ((shown, "o"), (values > EDGE, "^"), (values < -EDGE, "v")):
                some = which & ~left
                heights = np.clip(values[some], -EDGE, EDGE)
                axes.plot(across[some], heights, mark, color=BLUE, ms=4, mew=0)
            mean = held.loc[mine, "gain"].mean()
            axes.plot([place - 0.35, place + 0.35], [mean, mean], color=INK, lw=2)
        axes.set_xticks(range(len(networks)), networks, rotation=30, ha="right")
        axes.set_ylabel("points over your own model")
        axes.plot([], [], "o", color=BLUE, ms=4, label="changed as advised")
        axes.plot([], [], "o", color=INK, alpha=0.25, ms=4, label="advised to leave it")
        label = f"beyond {EDGE:.0f}, up to {np.nanmax(gains):.0f} ({(np.abs(gains) > EDGE).sum()} trainings)"
        axes.plot([], [], "^", color=BLUE, ms=4, mew=0, label=label)
        axes.plot([], [], color=INK, lw=2, label=f"mean (gains held within ±{MOST:.0f})")
        axes.legend(loc="upper left", ncols=2, fontsize=7)
        axes.set_ylim(max(-EDGE, float(np.nanmin(gains))) - 1, EDGE + 6)
        figure.savefig(FILE, dpi=160)


if __name__ == "__main__":
    main()
