"""T × M maps of accuracy, and of what BN adds to it; in each row the highest cells are framed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.curves.conditions import Array, averaged
from tstar.lab.report.law import number
from tstar.lab.report.records import Records, Sweep, say
from tstar.lab.report.style import (
    BLUE,
    ORANGE,
    color_bar,
    drawn_panels,
    finish,
    places,
    styled,
    tick,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = (0.34, 0.28)  # inches
_NORMS = {"none": "no BN", "batch": "BN"}


def heatmaps_data(records: Records, norm: str) -> pd.DataFrame:
    """Accuracy [%] over T and M: one panel per environment with this norm."""
    found = records.environments(norm)
    if not found:
        raise TstarError(
            f"No runs with norm = {norm!r} have two or more temperatures; add them to the study."
        )
    rows = [
        _place(group[0]) | cell
        for group in found
        for sweep in group
        for cell in _accuracies(sweep, records)
    ]
    return _framed(_frame(records, rows))


def difficulty_data(records: Records) -> pd.DataFrame:
    """The model and setting swept on most tasks of known csg: a row each, csg ascending."""
    models: dict[str, list[dict[str, Any]]] = {}
    for norm, words in _NORMS.items():
        for sweep in (sweep for group in records.environments(norm) for sweep in group):
            csg, dataset = number(sweep.facts.get("csg")), say("dataset", sweep.facts["dataset"])
            if csg is not None:
                model = sweep.title.removeprefix(f"{dataset} · ")
                task = f"{dataset} (csg {csg:.3g})"
                place: dict[str, Any] = {
                    "panel": f"{model} · {task} · {words}",
                    "row": task,
                    "column": words,
                }
                place |= {"scale": dataset, "csg": csg}
                cells = _accuracies(sweep, records)
                models.setdefault(model, []).extend(place | cell for cell in cells)
    most = max(models.values(), key=lambda cells: len({c["scale"] for c in cells}), default=[])
    if len({cell["scale"] for cell in most}) < 2:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, "
            "and csg = true."
        )
    return _framed(_frame(records, sorted(most, key=lambda cell: (cell["csg"], cell["scale"]))))


def bn_difference_data(records: Records) -> pd.DataFrame:
    """Accuracy with BN − without, in points, at each T that both have, over the seeds of both.

    A cell without a temperature has the best T of each side.
    """
    pairs = sorted(records.pairs(), key=lambda pair: pair[1].title)
    if not pairs:
        raise TstarError(
            'No condition was run with norm = "none" and with norm = "batch"; add the missing norm '
            "to the study."
        )
    rows = [_place(bn) | cell for plain, bn in pairs for cell in _differences(plain, bn, records)]
    frame = _frame(records, rows).replace({"temperature": {np.inf: np.nan}})
    high = frame["value"].abs().quantile(0.9) or 1.0
    return frame.assign(frame="", low=-high, high=high)


def _place(sweep: Sweep) -> dict[str, str]:
    """An environment's panel: data set and way of training are its row, the model its column."""
    model = say("model", sweep.facts.get("model"))
    row = sweep.title.replace(f" · {model}", "", 1)
    return {"panel": sweep.title, "row": row, "column": model, "scale": ""}


def _accuracies(sweep: Sweep, records: Records) -> Iterator[dict[str, float]]:
    for T in sweep.temperatures:
        yield _cell(sweep, T, 100 * sweep.seen(T), records)


def _differences(plain: Sweep, bn: Sweep, records: Records) -> Iterator[dict[str, float]]:
    both = {T: (T, T) for T in bn.temperatures if T in plain.temperatures}
    for T, (first, second) in {**both, np.inf: (plain.ranking[0], bn.ranking[0])}.items():
        base, gain = (s.curve.by_seed(t, s.metric) for s, t in ((plain, first), (bn, second)))
        values = [100 * (gain[seed] - base[seed]) for seed in base.keys() & gain.keys()]
        if values:
            yield _cell(bn, T, np.array(values), records)


def _cell(sweep: Sweep, T: float, values: Array, records: Records) -> dict[str, float]:
    M = int(sweep.facts.get("num_features") or 0)
    value = float(averaged(values, records.average or "median"))
    return {"num_features": M, "temperature": T, "value": value}


def _frame(records: Records, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per cell. Panels in a grid share all T, and the M of their row."""
    frame = pd.DataFrame(rows)
    if places(frame) is not None:
        cells = frame[["panel", "row", "column", "scale"]].drop_duplicates()
        widths = frame[["row", "num_features"]].drop_duplicates()
        whole = cells.merge(widths).merge(frame[["temperature"]].drop_duplicates(), how="cross")
        frame = whole.merge(frame, how="left")
    frame.attrs |= {"metric": records.metric, "average": records.average or "median"}
    return frame


def _framed(frame: pd.DataFrame) -> pd.DataFrame:
    """The highest and second highest value of each row framed, and the range of the colors."""
    rank = frame.groupby(["panel", "num_features"])["value"].rank(method="first", ascending=False)
    frame["frame"] = rank.map({1: "best", 2: "second"}).fillna("")
    # Runs that did not learn would leave one color for the rest: the lowest tenth share it.
    shades = frame.groupby("scale")["value"]
    frame["low"], frame["high"] = shades.transform("quantile", 0.1), shades.transform("max")
    frame.loc[frame["high"] <= frame["low"], "low"] -= 1
    return frame


@styled
def draw_heatmaps(frame: pd.DataFrame, legend: bool = True) -> Figure:
    label = "{average} {metric} accuracy [%] over seeds · framed: highest and second highest"
    return _draw_maps(frame, legend, label, "viridis")


@styled
def draw_bn_difference(frame: pd.DataFrame, legend: bool = True) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap

    # The colors of no BN and of BN, as in the other figures.
    colors = LinearSegmentedColormap.from_list("bn", [ORANGE, "#f4f4f4", BLUE])
    label = "{average} {metric} accuracy with BN − without, over the seeds of both [points]"
    return _draw_maps(frame.fillna({"temperature": np.inf}), legend, label, colors)


def _draw_maps(frame: pd.DataFrame, legend: bool, label: str, colors: Any) -> Figure:
    most = frame.groupby("panel")[["temperature", "num_features"]].nunique().max()
    width = CELL[0] * most["temperature"] + 0.75
    size = {"columns": max(1, min(4, int(9.5 // width))), "width": width}
    size["height"] = CELL[1] * most["num_features"] + (0.85 if legend else 0.4)
    figure, every, names, parts = drawn_panels(frame, **size)
    image: Any = None
    for axes, part in zip(every, parts, strict=True):
        image = _draw_map(axes, part, colors)
    shown = label.format(**frame.attrs)
    several = frame["scale"].nunique() > 1
    below = f"\n{shown} · colors within a task" if legend and several else ""
    labels = (f"temperature T{below}", "features M")
    finish(figure, every, names, labels, width=max(18, int(width * 14)))
    if legend and not several:
        color_bar(figure, image, every, shown)
    return figure


def _draw_map(axes: Axes, part: pd.DataFrame, colors: Any) -> Any:
    """One panel, with the numbers in its cells; wide M at the top, as in the paper."""
    from matplotlib.patches import Rectangle

    rows, columns = (sorted({*part[name]}) for name in ("num_features", "temperature"))
    grid = part.pivot_table(index="num_features", columns="temperature", values="value")
    grid = grid.reindex(index=rows, columns=columns)
    low, high = part["low"].max(), part["high"].max()
    image = axes.imshow(grid.to_numpy(), origin="lower", cmap=colors, vmin=low, vmax=high)
    cells = part[["num_features", "temperature", "value", "frame"]].dropna(subset="value")
    for M, T, value, mark in cells.itertuples(index=False, name=None):
        m, t = rows.index(M), columns.index(T)
        red, green, blue, _ = image.cmap(image.norm(value))
        light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        text = f"{value:.1f}".replace("-0.0", "0.0")
        ink: Any = {"fontsize": 7, "color": "black" if light else "white"}
        axes.text(t, m, text, ha="center", va="center", **ink).set_in_layout(False)
        # A white line below a black one is seen on every color, and in gray.
        for color, wide in (("white", 3.2), ("black", 1.4)) if mark else ():
            dashed = color == "black" and mark == "second"
            line: Any = {"linewidth": wide, "linestyle": (0, (2, 1.2)) if dashed else "-"}
            frame = Rectangle((t - 0.44, m - 0.42), 0.88, 0.84, fill=False, edgecolor=color, **line)
            axes.add_patch(frame)
    axes.set_xticks(range(len(columns)), [tick(T) for T in columns], fontsize=7)
    axes.set_yticks(range(len(rows)), [f"{M:g}" for M in rows], fontsize=7)
    # Cells of one shape, however many rows and columns a panel has.
    axes.set_aspect(CELL[1] / CELL[0])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
