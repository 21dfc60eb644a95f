"""T × M heatmaps over tasks of different csg: without BN above, with BN below."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from tstar.errors import TstarError
from tstar.report.figures.heatmaps import CELL, Heatmap, draw_heatmap, heatmap, span
from tstar.report.records import Environment, Records
from tstar.report.style import literal, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NORMS = {"plain": "no BN", "bn": "BN"}


class Task(NamedTuple):
    """A data set with its csg, and the heatmap under each norm (``None`` where it was not run)."""

    dataset: str
    csg: float
    plain: Heatmap | None
    bn: Heatmap | None


class Difficulty(NamedTuple):
    """Tasks of one model, csg ascending."""

    model: str
    tasks: tuple[Task, ...]
    metric: str


def difficulty_data(records: Records) -> Difficulty:
    """The model and setting that was swept on most data sets of known csg; at least two of them."""
    groups: dict[str, dict[tuple[float, str], dict[str, Environment]]] = {}
    for norm in ("none", "batch"):
        for environment in records.environments(norm):
            if environment.csg is None:
                continue
            facts = environment.sweeps[0].facts
            dataset = str(facts.get("dataset"))
            # What is left of the title says model and setting.
            model = environment.title.removeprefix(f"{dataset} · ")
            task = groups.setdefault(model, {}).setdefault((environment.csg, dataset), {})
            task[norm] = environment
    groups = {model: tasks for model, tasks in groups.items() if len(tasks) > 1}
    if not groups:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, and "
            "csg = true."
        )
    model = max(sorted(groups), key=lambda name: len(groups[name]))
    return Difficulty(
        model,
        tuple(
            Task(dataset, csg, _map(norms.get("none")), _map(norms.get("batch")))
            for (csg, dataset), norms in sorted(groups[model].items())
        ),
        records.metric,
    )


def _map(environment: Environment | None) -> Heatmap | None:
    return None if environment is None else heatmap(environment)


@styled
def draw_difficulty(data: Difficulty) -> Figure:
    norms = [name for name in _NORMS if any(getattr(task, name) for task in data.tasks)]
    maps = [m for task in data.tasks for m in (task.plain, task.bn) if m is not None]
    width = CELL[0] * max(len(m.temperatures) for m in maps) + 0.7
    height = CELL[1] * max(len(m.num_features) for m in maps) + 0.75
    # The paper's arrangement, norms in rows, while it fits a page; else tasks in rows.
    wide = width * len(data.tasks) <= 10
    shape = (len(norms), len(data.tasks)) if wide else (len(data.tasks), len(norms))
    figure = new_figure(max(4.5, width * shape[1] + 0.5), max(2.2, height * shape[0] + 0.6))
    every = figure.subplots(*shape, squeeze=False)
    for i, task in enumerate(data.tasks):
        # Tasks differ in accuracy: each has its own range of colors, shared by its two norms.
        low, high = span([m.accuracy for m in (task.plain, task.bn) if m is not None])
        for j, name in enumerate(norms):
            axes, panel = (every[j, i] if wide else every[i, j]), getattr(task, name)
            if panel is None:
                axes.set_axis_off()
                continue
            draw_heatmap(axes, panel, low, high)
            title = f"{task.dataset} (csg {task.csg:.3g}), {_NORMS[name]}"
            axes.set_title(literal(textwrap.fill(title, int(width * 13))), fontsize=8)
    figure.supxlabel("temperature T", fontsize=9)
    figure.supylabel("features M", fontsize=9)
    figure.suptitle(
        literal(f"{data.model}: {data.metric} accuracy [%], lighter is better within a task"),
        fontsize=9,
    )
    return figure
