"""T × M heatmaps of accuracy, one panel per data set and model; best framed solid, second best dashed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError
from tstar.report.records import Environment, Records
from tstar.report.style import color_bar, finish, panels, styled, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = (0.34, 0.28)  # inches: small, so that a phone shows the numbers at a size that can be read


class Heatmap(NamedTuple):
    """``accuracy[m, t]`` is the median over seeds, NaN where nothing was run.

    ``best[m]`` and ``second[m]`` are the columns of the best and second best T of a row by validation accuracy, as
    everywhere in a report (test accuracy where none was held out); on a tie the lower T comes first. ``second[m]`` is
    −1 with a single temperature. Panels of one ``scale`` share their colors.
    """

    title: str
    temperatures: tuple[float, ...]
    num_features: tuple[int, ...]
    accuracy: NDArray[np.float64]
    best: tuple[int, ...]
    second: tuple[int, ...]
    scale: str = ""


EMPTY = Heatmap("", (), (), np.empty((0, 0)), (), ())  # a place in a row where nothing was run


class Heatmaps(NamedTuple):
    """``columns``: panels in a row that belong together; 0: as many as fit."""

    panels: tuple[Heatmap, ...]
    norm: str
    metric: str
    columns: int = 0


def heatmaps_data(records: Records, norm: str) -> Heatmaps:
    """One panel per environment with this norm."""
    found = records.environments(norm)
    if not found:
        raise TstarError(
            f"No runs with norm = {norm!r} have two or more temperatures; add them to the study."
        )
    return Heatmaps(tuple(heatmap(e) for e in found), norm, records.metric)


def heatmap(environment: Environment) -> Heatmap:
    """An environment as a grid: the rows are its M, the columns all temperatures that it has."""
    sweeps = environment.sweeps
    temperatures = tuple(sorted({T for sweep in sweeps for T in sweep.temperatures}))
    grid = np.full((len(sweeps), len(temperatures)), np.nan)
    for row, sweep in enumerate(sweeps):
        for i, T in enumerate(sweep.temperatures):
            grid[row, temperatures.index(T)] = float(np.median(sweep.seen(i)))
    ranked = [[temperatures.index(s.temperatures[i]) for i in s.ranking] for s in sweeps]
    return Heatmap(
        environment.title,
        temperatures,
        tuple(int(sweep.facts["num_features"]) for sweep in sweeps),
        grid,
        tuple(order[0] for order in ranked),
        tuple(order[1] if len(order) > 1 else -1 for order in ranked),
    )


@styled
def draw_heatmaps(data: Heatmaps) -> Figure:
    widest = max(len(panel.temperatures) for panel in data.panels)
    tallest = max(len(panel.num_features) for panel in data.panels)
    width = CELL[0] * widest + 0.75
    columns = data.columns or max(1, min(4, int(9.5 // width)))
    figure, every = panels(
        len(data.panels), columns=columns, width=width, height=CELL[1] * tallest + 0.75
    )
    image: Any = None
    scales = {panel.scale for panel in data.panels if panel.best}
    spans = {s: span([p.accuracy for p in data.panels if p.scale == s]) for s in scales}
    there = [(axes, panel) for axes, panel in zip(every, data.panels, strict=True) if panel.best]
    for axes in every:
        axes.set_axis_off()
    for axes, panel in there:
        axes.set_axis_on()
        image = draw_heatmap(axes, panel, *spans[panel.scale])
        # Cells of one shape, however many widths a panel has.
        axes.set_box_aspect(CELL[1] * len(panel.num_features) / (CELL[0] * widest))
    shown = f"{data.metric} accuracy [%]"
    note = "" if len(scales) == 1 else f" · {shown} · colors within a task"
    titles = [panel.title + note for _, panel in there]
    finish(
        figure,
        [axes for axes, _ in there],
        titles,
        ("temperature T", "features M"),
        width=max(18, int(width * 14)),
    )
    if len(scales) == 1:
        color_bar(figure, image, every, shown)
    return figure


def span(grids: list[NDArray[np.float64]]) -> tuple[float, float]:
    """The range of colors [%]. Runs that did not learn at all would leave one color for the rest:
    the lowest tenth of the values share the darkest."""
    values = 100 * np.concatenate([grid[~np.isnan(grid)] for grid in grids])
    low, high = float(np.quantile(values, 0.1)), float(values.max())
    return (low, high) if high > low else (low - 1, high)


def draw_heatmap(axes: Axes, panel: Heatmap, low: float, high: float) -> Any:
    """One panel, with the numbers in its cells; wide M at the top, as in the paper."""
    from matplotlib.patches import Rectangle

    image = axes.imshow(
        100 * panel.accuracy, cmap="viridis", vmin=low, vmax=high, aspect="auto", origin="lower"
    )
    rows, columns = panel.accuracy.shape
    for m in range(rows):
        for t in range(columns):
            value = 100 * panel.accuracy[m, t]
            if np.isnan(value):
                continue
            # Viridis is light from about two thirds up: dark figures there, white ones below.
            ink = "black" if (value - low) / (high - low) > 0.62 else "white"
            shown = axes.text(t, m, f"{value:.1f}", ha="center", va="center", fontsize=7, color=ink)
            # It lies inside: finding the places of panels need not measure a thousand of them.
            shown.set_in_layout(False)
        for t, line in ((panel.best[m], "-"), (panel.second[m], (0, (2, 1.2)))):
            if t < 0:
                continue
            # A white line below a black one is seen on every color, and in gray.
            for color, wide in (("white", 3.2), ("black", 1.4)):
                axes.add_patch(
                    Rectangle(
                        (t - 0.44, m - 0.42),
                        0.88,
                        0.84,
                        fill=False,
                        edgecolor=color,
                        linewidth=wide,
                        linestyle="-" if color == "white" else line,
                    )
                )
    axes.set_xticks(range(columns), [tick(T) for T in panel.temperatures], fontsize=7)
    axes.set_yticks(range(rows), [str(M) for M in panel.num_features], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
