"""T × M maps of accuracy, and of what BN adds to it; in each row the highest cells are framed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.report.law import number
from tstar.lab.report.records import Records, Sweep, say
from tstar.lab.report.style import BLUE, ORANGE, draw_panels, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = (0.34, 0.28)  # inches
_NORMS = {"none": "no BN", "batch": "BN"}


def heatmaps_data(records: Records, norm: str) -> pd.DataFrame:
    """Accuracy [%] over T and M: one panel per environment with this norm."""
    found = sorted(records.with_norm(norm), key=lambda sweep: sweep.title)
    if not found:
        raise TstarError(
            f"No runs with norm = {norm!r} have two or more temperatures; add them to the study."
        )
    rows = [cell for sweep in found for cell in _accuracies(sweep, _place(sweep))]
    return _framed(records, rows)


def difficulty_data(records: Records) -> pd.DataFrame:
    """The model and setting swept on most tasks of known csg, csg ascending."""
    models: dict[str, list[dict[str, Any]]] = {}
    for norm, words in _NORMS.items():
        for sweep in records.with_norm(norm):
            csg = number(sweep.facts.get("csg"))
            if csg is None:
                continue
            dataset, _, model = sweep.title.partition(" · ")
            name = f"{model} · {dataset} (csg {csg:.3g}) · {words}"
            place = {"panel": name, "column": words, "scale": dataset, "csg": csg}
            models.setdefault(model, []).extend(_accuracies(sweep, place))
    most = max(models.values(), key=lambda cells: len({c["scale"] for c in cells}), default=[])
    if len({cell["scale"] for cell in most}) < 2:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, "
            "and csg = true."
        )
    return _framed(records, sorted(most, key=lambda cell: (cell["csg"], cell["scale"])))


def bn_difference_data(records: Records) -> pd.DataFrame:
    """Accuracy with BN − without, in points, at each T that both have, over the seeds of both.

    A cell without a temperature has the best T of each side.
    """
    rows: list[dict[str, Any]] = []
    for plain, bn in sorted(records.pairs(), key=lambda pair: pair[1].title):
        both = {T: (T, T) for T in bn.temperatures if T in plain.temperatures}
        for T, (first, second) in {**both, np.nan: (plain.best, bn.best)}.items():
            base, there = plain.curve.by_seed(first, bn.metric), bn.curve.by_seed(second, bn.metric)
            values = [100 * (there[seed] - base[seed]) for seed in base.keys() & there.keys()]
            if values:
                rows.append(_cell(bn, _place(bn), T, values))
    if not rows:
        raise TstarError(
            'No condition was run with norm = "none" and with norm = "batch"; add the missing norm '
            "to the study."
        )
    frame = pd.DataFrame(rows)
    frame.attrs |= {"metric": records.metric}
    high = frame["value"].abs().quantile(0.9) or 1.0
    return frame.assign(frame="", low=-high, high=high)


def _place(sweep: Sweep) -> dict[str, str]:
    """An environment's panel. Models stand side by side, if there are few."""
    model = say("model", sweep.facts.get("model"))
    return {"panel": sweep.title, "column": model, "scale": ""}


def _accuracies(sweep: Sweep, place: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_cell(sweep, place, T, 100 * sweep.seen(T)) for T in sweep.temperatures]


def _cell(sweep: Sweep, place: Mapping[str, Any], T: float, values: Any) -> dict[str, Any]:
    M = int(sweep.facts.get("num_features") or 0)
    return {**place, "num_features": M, "temperature": T, "value": float(np.median(values))}


def _framed(records: Records, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The highest and second highest value of each row framed, and the range of the colors."""
    frame = pd.DataFrame(rows)
    frame.attrs |= {"metric": records.metric}
    rank = frame.groupby(["panel", "num_features"])["value"].rank(method="first", ascending=False)
    frame["frame"] = rank.map({1: "best", 2: "second"}).fillna("")
    # Runs that did not learn would leave one color for the rest: the lowest tenth share it.
    shades = frame.groupby("scale")["value"]
    frame["low"], frame["high"] = shades.transform("quantile", 0.1), shades.transform("max")
    frame.loc[frame["high"] <= frame["low"], "low"] -= 1
    return frame


def draw_heatmaps(frame: pd.DataFrame) -> Figure:
    label = "median {metric} accuracy [%] over seeds · framed: highest and second highest"
    return _draw_maps(frame, label, "viridis")


def draw_bn_difference(frame: pd.DataFrame) -> Figure:
    from matplotlib.colors import LinearSegmentedColormap

    # The colors of no BN and of BN, as in the other figures.
    colors = LinearSegmentedColormap.from_list("bn", [ORANGE, "#f4f4f4", BLUE])
    label = "median {metric} accuracy with BN − without, over the seeds of both [points]"
    return _draw_maps(frame.fillna({"temperature": np.inf}), label, colors)


def _draw_maps(frame: pd.DataFrame, label: str, colors: Any) -> Figure:
    most = frame.groupby("panel")[["temperature", "num_features"]].nunique().max()
    width, columns = CELL[0] * most["temperature"] + 0.75, frame["column"].nunique()
    if not 1 < columns <= 4:
        columns = max(1, min(4, int(9.5 // width)))
    shown = label.format(**frame.attrs)
    if frame["scale"].nunique() > 1:
        shown += " · colors within a task"
    size = {"width": width, "height": CELL[1] * most["num_features"] + 0.85}
    size |= {"columns": columns, "title_width": max(18, int(width * 14))}
    labels = (f"temperature T\n{shown}", "features M")
    return draw_panels(frame, partial(_draw_map, colors=colors), labels, **size)


def _draw_map(axes: Axes, rows: pd.DataFrame, colors: Any) -> None:
    """One panel, with the numbers in its cells; wide M at the top, as in the paper."""
    from matplotlib.patches import Rectangle

    grid = rows.pivot_table(index="num_features", columns="temperature", values="value")
    widths, temperatures = [*grid.index], [*grid.columns]
    low, high = rows["low"].max(), rows["high"].max()
    image = axes.imshow(grid.to_numpy(), origin="lower", cmap=colors, vmin=low, vmax=high)
    cells = rows[["num_features", "temperature", "value", "frame"]]
    for M, T, value, mark in cells.itertuples(index=False, name=None):
        m, t = widths.index(M), temperatures.index(T)
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
    axes.set_xticks(range(len(temperatures)), [tick(T) for T in temperatures], fontsize=7)
    axes.set_yticks(range(len(widths)), [f"{M:g}" for M in widths], fontsize=7)
    # Cells of one shape, however many rows and columns a panel has.
    axes.set_aspect(CELL[1] / CELL[0])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
