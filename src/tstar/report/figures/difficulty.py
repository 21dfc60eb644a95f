"""T × M heatmaps over tasks of different csg, each without and with BN."""

from __future__ import annotations

from tstar.errors import TstarError
from tstar.report.figures.heatmaps import Heatmap, Heatmaps, heatmap
from tstar.report.records import Records

_NORMS = {"none": "no BN", "batch": "BN"}


def difficulty_data(records: Records) -> Heatmaps:
    """The model and setting that was swept on most data sets of known csg, csg ascending; at least two of them."""
    groups: dict[str, dict[tuple[float, str], list[Heatmap]]] = {}
    for norm, words in _NORMS.items():
        for environment in records.environments(norm):
            if environment.csg is None:
                continue
            dataset = str(environment.sweeps[0].facts.get("dataset"))
            # What is left of the title says model and setting.
            model = environment.title.removeprefix(f"{dataset} · ")
            task = groups.setdefault(model, {}).setdefault((environment.csg, dataset), [])
            title = f"{model} · {dataset} (csg {environment.csg:.3g}) · {words}"
            task.append(heatmap(environment)._replace(title=title, scale=dataset))
    groups = {model: tasks for model, tasks in groups.items() if len(tasks) > 1}
    if not groups:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, and "
            "csg = true."
        )
    tasks = groups[max(sorted(groups), key=lambda name: len(groups[name]))]
    panels = tuple(panel for _, maps in sorted(tasks.items()) for panel in maps)
    return Heatmaps(panels, "any", records.metric)
