"""T × M maps of accuracy, and of what BN adds to it; in each row the highest cells are framed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.curves.conditions import averaged
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


@dataclass(frozen=True, eq=False)
class Map:
    """One panel before it is drawn: M → T → value, and where it stands.

    Panels of one ``scale`` share their colors.
    """

    panel: str
    row: str
    column: str
    values: Mapping[int, Mapping[float, float]]
    scale: str = ""


def heatmaps_data(records: Records, norm: str) -> pd.DataFrame:
    """Accuracy [%] over T and M: one panel per environment with this norm."""
    found = records.environments(norm)
    if not found:
        raise TstarError(
            f"No runs with norm = {norm!r} have two or more temperatures; add them to the study."
        )
    shown = [
        _placed(group[0], {width(s): _accuracies(s, records) for s in group}) for group in found
    ]
    return _framed(_frame(records, shown))


def difficulty_data(records: Records) -> pd.DataFrame:
    """The model and setting swept on most tasks of known csg: a row each, csg ascending."""
    models: dict[str, list[tuple[float, Map]]] = {}
    for norm, words in _NORMS.items():
        for group in records.environments(norm):
            facts = group[0].facts
            csg, dataset = number(facts.get("csg")), say("dataset", facts["dataset"])
            if csg is not None:
                model = group[0].title.removeprefix(f"{dataset} · ")
                task = f"{dataset} (csg {csg:.3g})"
                values = {width(s): _accuracies(s, records) for s in group}
                panel = Map(f"{model} · {task} · {words}", task, words, values, dataset)
                models.setdefault(model, []).append((csg, panel))
    most = max(models.values(), key=lambda tasks: len({t.scale for _, t in tasks}), default=[])
    if len({task.scale for _, task in most}) < 2:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, "
            "and csg = true."
        )
    ordered = sorted(most, key=lambda task: (task[0], task[1].scale))
    return _framed(_frame(records, [task for _, task in ordered]))


def bn_difference_data(records: Records) -> pd.DataFrame:
    """Accuracy with BN − without, in points, at each T that both have, over the seeds of both.

    A cell without a temperature has the best T of each side.
    """
    groups: dict[str, list[tuple[Sweep, Sweep]]] = {}
    for plain, bn in records.pairs():
        groups.setdefault(bn.title, []).append((plain, bn))
    if not groups:
        raise TstarError(
            'No condition was run with norm = "none" and with norm = "batch"; add the missing norm '
            "to the study."
        )
    shown = [
        _placed(pairs[0][1], {width(bn): _differences(plain, bn, records) for plain, bn in pairs})
        for pairs in groups.values()
    ]
    frame = _frame(records, shown).replace({"temperature": {np.inf: np.nan}})
    high = frame["value"].abs().quantile(0.9) or 1.0
    return frame.assign(frame="", low=-high, high=high)


def width(sweep: Sweep) -> int:
    """M of a sweep; 0 if it is not known."""
    return int(sweep.facts.get("num_features") or 0)


def _accuracies(sweep: Sweep, records: Records) -> dict[float, float]:
    average = records.average or "median"
    return {T: 100 * float(averaged(sweep.seen(T), average)) for T in sweep.temperatures}


def _differences(plain: Sweep, bn: Sweep, records: Records) -> dict[float, float]:
    both = {T: (T, T) for T in bn.temperatures if T in plain.temperatures}
    found = {}
    for T, (first, second) in {**both, np.inf: (plain.ranking[0], bn.ranking[0])}.items():
        base, gain = (s.curve.by_seed(t, s.metric) for s, t in ((plain, first), (bn, second)))
        values = [100 * (gain[seed] - base[seed]) for seed in base.keys() & gain.keys()]
        if values:
            found[T] = float(averaged(np.array(values), records.average or "median"))
    return found


def _placed(sweep: Sweep, values: Mapping[int, Mapping[float, float]]) -> Map:
    """An environment: its data set and way of training is the row, its model the column."""
    model = say("model", sweep.facts.get("model"))
    row = sweep.title.replace(f" · {model}", "", 1)
    return Map(sweep.title, row, model, values)


def _frame(records: Records, shown: Sequence[Map]) -> pd.DataFrame:
    """One row per cell. Panels in a grid share all T, and the M of their row."""
    rows = [
        {
            **{name: getattr(panel, name) for name in ("panel", "row", "column", "scale")},
            **{"num_features": M, "temperature": T, "value": value},
        }
        for panel in shown
        for M, line in panel.values.items()
        for T, value in line.items()
    ]
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
    grid = np.full((len(rows), len(columns)), np.nan)
    cells = part[["num_features", "temperature", "value", "frame"]].dropna(subset="value")
    places = [(rows.index(M), columns.index(T)) for M, T in cells.iloc[:, :2].to_numpy()]
    for place, value in zip(places, cells["value"], strict=True):
        grid[place] = value
    low, high = part["low"].max(), part["high"].max()
    image = axes.imshow(grid, origin="lower", cmap=colors, vmin=low, vmax=high)
    for (m, t), value, mark in zip(places, cells["value"], cells["frame"], strict=True):
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
