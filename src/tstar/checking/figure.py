"""Test accuracy against T, and where the formula points: the figure of a check, and of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """Accuracies in percent: a model's name, (T, mean, error) for each T, the plain model's, and the formula's T."""

    name: str
    points: Sequence[tuple[float, float, float]]
    plain: float
    advised: float


def draw(lines: Sequence[Line], path: str | Path, title: str) -> None:
    """Draw into an SVG, PDF or PNG file; nothing of matplotlib's global state is touched."""
    from tstar.report.style import COLORS, look, new_figure, save, temperature_axis

    with look():
        figure = new_figure(6.4, 4.0)
        axes = figure.subplots()
        shown = []
        for line, color in zip(lines, COLORS, strict=False):
            of = f"{line.name}: " if line.name else ""
            T, mean, error = zip(*line.points, strict=True)
            shown += [
                axes.errorbar(
                    T, mean, error, color=color, marker="o", capsize=3, label=f"{of}BN, T"
                ),
                axes.axhline(line.plain, color=color, ls=":", label=f"{of}plain"),
                axes.axvline(
                    line.advised, color=color, ls="--", label=f"{of}formula: T = {line.advised:.3g}"
                ),
            ]
        temperature_axis(axes, sorted({T for line in lines for T, *_ in line.points}))
        axes.set(xlabel="temperature T", ylabel="test accuracy [%]")
        axes.set_title(title, fontsize="medium")
        # Below the axes, one column per model: nothing that was measured is covered.
        figure.legend(handles=shown, loc="outside lower center", ncols=max(2, len(lines)))
    save(figure, path)
