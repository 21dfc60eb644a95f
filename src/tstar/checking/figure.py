"""The figure of a check: test accuracy against T, and where the formula points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tstar.errors import TstarError, require

if TYPE_CHECKING:
    from tstar.checking.trial import Check


def draw(check: Check, path: Path) -> None:
    """Draw into a file; nothing of matplotlib's global state is touched."""
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    rows = check.rows[1:]
    temperatures = [row.temperature or 1.0 for row in rows]
    axes.errorbar(
        temperatures,
        [100 * row.test_accuracy for row in rows],
        yerr=[100 * (row.error or 0) for row in rows],
        marker="o",
        capsize=3,
        label="BatchNorm and T",
    )
    axes.axhline(100 * check.plain.test_accuracy, color="0.5", ls=":", label="the model as it is")
    axes.axvline(
        check.advice.temperature,
        color="tab:red",
        ls="--",
        label=f"formula: T = {check.advice.temperature:.3g}",
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(temperatures, [f"{T:.3g}" for T in temperatures])
    axes.minorticks_off()
    axes.set_xlabel("temperature T")
    axes.set_ylabel("test accuracy [%]")
    axes.set_title(f"{check.steps} steps, {check.plain.runs} seeds", fontsize="medium")
    axes.legend()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise TstarError(f"The figure {str(path)!r} could not be written: {error}.") from error
