"""T × M heatmaps over tasks of different csg, one row per task: without BN, and with it."""

from __future__ import annotations

from itertools import chain, zip_longest

from tstar.errors import TstarError
from tstar.report.figures.heatmaps import EMPTY, Heatmap, Heatmaps, heatmap
from tstar.report.records import Records

_NORMS = {"none": "no BN", "batch": "BN"}


def difficulty_data(records: Records) -> Heatmaps:
    """The model and setting that was swept on most data sets of known csg, csg ascending; at least two of them."""
    groups: dict[str, dict[tuple[float, str], dict[str, list[Heatmap]]]] = {}
    for norm, words in _NORMS.items():
        for environment in records.environments(norm):
            if environment.csg is None:
                continue
            dataset = str(environment.sweeps[0].facts.get("dataset"))
            # What is left of the title says model and setting.
            model = environment.title.removeprefix(f"{dataset} · ")
            task = groups.setdefault(model, {}).setdefault((environment.csg, dataset), {})
            title = f"{model} · {dataset} (csg {environment.csg:.3g}) · {words}"
            found = heatmap(environment)._replace(title=title, scale=dataset)
            task.setdefault(norm, []).append(found)
    groups = {model: tasks for model, tasks in groups.items() if len(tasks) > 1}
    if not groups:
        raise TstarError(
            "No model was run on two or more data sets of known csg; add data sets to the study, and "
            "csg = true."
        )
    tasks = groups[max(sorted(groups), key=lambda name: len(groups[name]))]
    norms = [norm for norm in _NORMS if any(norm in maps for maps in tasks.values())]
    rows = [
        row
        for _, maps in sorted(tasks.items())
        for row in zip_longest(*(maps.get(norm, ()) for norm in norms), fillvalue=EMPTY)
    ]
    return Heatmaps(tuple(chain(*rows)), "any", records.metric, columns=2 * (len(norms) > 1))
