"""T × M heatmaps of accuracy; in each row the best T is framed solid, the second best dashed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.report.law import number
from tstar.lab.report.records import CHOSEN, Records, Sweep, said
from tstar.lab.report.style import color_bar, drawn_panels, finish, styled, tick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = (0.34, 0.28)  # inches
_NORMS = {"none": "no BN", "batch": "BN"}


def heatmaps_data(records: Records, norm: str) -> pd.DataFrame:
    """One panel per environment with this norm."""
    found = records.environments(norm)
    if not found:
        raise TstarError(
            f"No runs with norm = {norm!r} have two or more temperatures; add them to the study."
        )
    return _frame(records, [(group[0].title, "", group) for group in found])


def difficulty_data(records: Records) -> pd.DataFrame:
    """The model and setting that was swept on most tasks of known csg, csg ascending."""
    models: dict[str, list[tuple[float, str, str, list[Sweep]]]] = {}
    for norm, words in _NORMS.items():
        for group in records.environments(norm):
            facts = group[0].facts
            csg, dataset = number(facts.get("csg")), said("dataset", facts["dataset"])
            if csg is not None:
                model = group[0].title.removeprefix(f"{dataset} · ")
                title = f"{model} · {dataset} (csg {csg:.3g}) · {words}"
                models.setdefault(model, []).append((csg, dataset, title, group))
    most = max(models.values(), key=lambda tasks: len({t[1] for t in tasks}), default=[])
    if len({task[1] for task in most}) < 2:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, "
            "and csg = true."
        )
    ordered = sorted(most, key=lambda task: task[:2])
    return _frame(records, [(title, dataset, group) for _, dataset, title, group in ordered])


def _frame(records: Records, groups: Sequence[tuple[str, str, Sequence[Sweep]]]) -> pd.DataFrame:
    """One row per cell: the median accuracy [%], its frame, and the range of its panel's colors."""
    rows: list[dict[str, Any]] = []
    for title, scale, sweeps in groups:
        for sweep in sweeps:
            framed = dict(zip(sweep.ranking, ("best", "second"), strict=False))
            for T in sweep.temperatures:
                row = {"panel": title, "scale": scale, "temperature": T, "frame": framed.get(T, "")}
                row["num_features"] = int(sweep.facts.get("num_features") or 0)
                rows.append(row | {"accuracy": 100 * float(np.median(sweep.seen(T)))})
    frame = pd.DataFrame(rows)
    # Runs that did not learn would leave one color for the rest: the lowest tenth share it.
    shades = frame.groupby("scale")["accuracy"]
    frame["low"], frame["high"] = shades.transform("quantile", 0.1), shades.transform("max")
    frame.loc[frame["high"] <= frame["low"], "low"] -= 1
    frame.attrs |= {"metric": records.metric, "chosen_on": records.chosen_on}
    return frame


@styled
def draw_heatmaps(frame: pd.DataFrame, legend: bool = True) -> Figure:
    most = frame.groupby("panel")[["temperature", "num_features"]].nunique().max()
    width = CELL[0] * most["temperature"] + 0.75
    size = {"columns": max(1, min(4, int(9.5 // width))), "width": width}
    size["height"] = CELL[1] * most["num_features"] + (0.85 if legend else 0.4)
    figure, every, names, parts = drawn_panels(frame, **size)
    image: Any = None
    for axes, part in zip(every, parts, strict=True):
        image = _draw(axes, part)
        # Cells of one shape, however many widths a panel has.
        axes.set_box_aspect(
            CELL[1] * part["num_features"].nunique() / (CELL[0] * part["temperature"].nunique())
        )
    shown, chose = (CHOSEN[frame.attrs[name]] for name in ("metric", "chosen_on"))
    said = f"numbers: {shown} accuracy [%] · frames: best and second best T by {chose} accuracy"
    apart = frame["scale"].nunique() > 1
    below = f"\n{said} · colors within a task" if legend and apart else ""
    labels = (f"temperature T{below}", "features M")
    finish(figure, every, names, labels, width=max(18, int(width * 14)))
    if legend and not apart:
        color_bar(figure, image, every, said)
    return figure


def _draw(axes: Axes, part: pd.DataFrame) -> Any:
    """One panel, with the numbers in its cells; wide M at the top, as in the paper."""
    from matplotlib.patches import Rectangle

    grid = part.pivot_table(index="num_features", columns="temperature", values="accuracy")
    low, high = float(part["low"].iloc[0]), float(part["high"].iloc[0])
    colors: Any = {"cmap": "viridis", "vmin": low, "vmax": high}
    image = axes.imshow(grid.to_numpy(), aspect="auto", origin="lower", **colors)
    rows, columns = [*grid.index], [*grid.columns]
    cells = part[["num_features", "temperature", "accuracy", "frame"]]
    for M, T, value, mark in cells.itertuples(index=False, name=None):
        m, t = rows.index(M), columns.index(T)
        # Viridis is light from about two thirds up: dark figures there, white ones below.
        ink = "black" if (value - low) / (high - low) > 0.62 else "white"
        shown = axes.text(t, m, f"{value:.1f}", ha="center", va="center", fontsize=7, color=ink)
        shown.set_in_layout(False)  # it lies inside
        # A white line below a black one is seen on every color, and in gray.
        for color, wide in (("white", 3.2), ("black", 1.4)) if mark else ():
            dashed = color == "black" and mark == "second"
            line: Any = {"linewidth": wide, "linestyle": (0, (2, 1.2)) if dashed else "-"}
            frame = Rectangle((t - 0.44, m - 0.42), 0.88, 0.84, fill=False, edgecolor=color, **line)
            axes.add_patch(frame)
    axes.set_xticks(range(len(columns)), [tick(T) for T in columns], fontsize=7)
    axes.set_yticks(range(len(rows)), [str(M) for M in rows], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return image
