"""Methods side by side: a study with several methods, and a view of its runs, paired by seed.

::

    comparison = tstar.lab.compare("digits", "resnet10", ["default", "ours-cn"], epochs=10)
    print(comparison)                          # the table
    comparison.save("tstar-compare")           # the table as files

A study of your own is compared by ``view(tstar.lab.load_runs("runs.db", study="name"))``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, unknown, whole
from tstar.imports import require
from tstar.lab.cells import disarmed
from tstar.lab.data import load
from tstar.lab.statistics import Paired, holm, paired
from tstar.lab.sweep.run import run_study
from tstar.lab.sweep.spec import is_absolute, json_object
from tstar.lab.sweep.study import Study, script_study
from tstar.lab.sweep.transfer import load_runs

if TYPE_CHECKING:
    import pandas as pd

    from tstar.lab.report.tables import Table

# What may differ between the runs of a comparison.
_VARIES = ("method", "options", "temperature", "norm", "source", "seed", "role", "teacher_features")
_COLUMNS = ("method", "accuracy [%]", "n", "cost", "trained", "vs {}", "p", "NLL", "ECE")
_NOTE = (
    "Test accuracy at the last epoch, mean ± sample standard deviation over n seeds; best in "
    "bold, second underlined. A run that diverged counts as chance, 1/K. Cost: training runs per "
    "seed (those of a search, and a teacher). Trained: the norm that was inserted before the output "
    "layer, T (the mean; a dash if there is no single one), and what the method multiplied the "
    "learning rate by. Difference in points over the same seeds ± half its 95 % interval; p from "
    "the paired t-test after Holm's correction for the number of methods."
)


def compare(
    data: Any,
    model: Any,
    methods: Sequence[Any],
    *,
    baseline: str = "default",
    store: str | Path | None = None,
    workers: int | None = None,
    device: str = "auto",
    data_root: str | None = None,
    on_run: Callable[[Mapping[str, Any]], None] | None = None,
    **study: Any,
) -> Comparison:
    """Train every method on every seed, and compare them.

    The runs of a seed share the held-out part, the initial weights and the order of batches.
    Validation data choose (temperature check, temperature scaling, meta-kd), test data score, at
    the last epoch. A run that fails is left out, with its reason.

    Args:
        data: a data set's name, in memory (a ``DataSet``, or four arrays), or a function of yours.
        model: a network's name, or a function of yours.
        methods: names for ``tstar.lab.methods.get``, or functions of yours.
        baseline: the method that the others are tested against; added if it is not named.
        store: the file of runs; what it has is not trained again. A temporary one by default.
        workers, device, data_root, on_run: as in :func:`tstar.lab.run_study`.
        study: ``seeds``, how many (0, 1, …; 5 by default) or which; and any other key of a study:
            ``epochs=10``, ``num_features=64``, …
    """
    both: dict[str, Any] = {"baseline": baseline, "data_root": data_root}
    made = comparison_study(data, model, methods, **both, **study)
    with TemporaryDirectory() as folder:
        path = Path(folder, "runs.db") if store is None else Path(store)
        options: dict[str, Any] = {"workers": workers, "device": device, "on_run": on_run}
        run_study(made, path, data_root=data_root, **options)
        return view_study(path, made, baseline)


def comparison_study(
    data: Any,
    model: Any,
    methods: Sequence[Any],
    *,
    seeds: int | Sequence[int] = 5,
    baseline: str = "default",
    data_root: str | None = None,
    **training: Any,
) -> Study:
    """The study of a comparison, in the words of :func:`compare`.

    A teacher has twice ``num_features``, unless ``teacher_features`` says otherwise.
    """
    # A study names no path of this machine: what lies there is given.
    outside = isinstance(data, str) and (is_absolute(data) or data.startswith(("~", "..")))
    if isinstance(data, PathLike) or outside:
        data = load(data, root=data_root, size=training.pop("size", None))
    names = [name.strip() if isinstance(name, str) else name for name in methods]
    names = [*dict.fromkeys([baseline] * (baseline not in names) + [n for n in names if n])]
    numbers = seeds if isinstance(seeds, Sequence) else range(whole("seeds", seeds, least=1))
    if isinstance(width := training.get("num_features"), int):
        training.setdefault("teacher_features", 2 * width)
    return script_study(
        {
            "name": "compare",
            "csg": False,  # measured only if a method needs it
            "training": {"dataset": data, "model": model, **training},
            "grid": {"seed": [*numbers], "method": names},
        }
    )


def view_study(store: str | Path, study: Study, baseline: str = "default") -> Comparison:
    """The comparison of a study that was swept into a store, its methods in the study's order."""
    places = {spec.method: place for place, spec in enumerate(reversed(study.specs))}
    runs = load_runs(store, study=study.name)
    order = runs["method"].map(places).sort_values(ascending=False, kind="stable").index
    return view(runs.loc[order], baseline)


def view(runs: pd.DataFrame, baseline: str = "default") -> Comparison:
    """Runs of a store that differ in method and seed alone, compared: one row per method."""
    runs = runs[runs["role"] != "teacher"]
    _check(runs)
    if baseline not in {*runs["method"]}:
        raise unknown("baseline", baseline, {*runs["method"]})
    chance = 100 / runs["num_classes"].astype(float)
    score = (100 * runs["test_accuracy"]).mask(runs["status"] == "diverged", chance)
    runs = runs.assign(score=score)
    scores = runs.pivot(index="seed", columns="method", values="score")
    tests: dict[str, Paired] = {}
    for name in scores.columns.drop(baseline):
        both = scores[[name, baseline]].dropna()
        if len(both):
            tests[name] = paired(both[name].tolist(), both[baseline].tolist())
    for name, p in holm({n: t.p_t for n, t in tests.items() if t.p_t is not None}).items():
        tests[name] = replace(tests[name], p_holm=p)
    rows = [
        _row(str(name), group, len(scores), tests.get(str(name)))
        for name, group in runs.groupby("method", sort=False)
    ]
    return Comparison(runs, require("pandas", "lab").DataFrame(rows), baseline)


def _check(runs: pd.DataFrame) -> None:
    """Two runs of one method and seed, or of two trainings, are no comparison."""
    if runs.empty:
        raise TstarError("No runs to compare; sweep the study first, or choose others.")
    asked = [json_object(text) for text in runs["spec"]]
    names = {name for spec in asked for name in spec} - {*_VARIES}
    differing = [name for name in names if len({str(spec.get(name)) for spec in asked}) > 1]
    if differing or runs.duplicated(["method", "seed"]).any():
        why = f"also differ in {', '.join(sorted(differing))}" if differing else "have one twice"
        raise TstarError(
            f"Runs that are compared must differ in method and seed alone, but these {why}; choose "
            "some of them: load_runs(store, where=…, study=…)."
        )


def _row(name: str, runs: pd.DataFrame, seeds: int, test: Paired | None) -> dict[str, Any]:
    """A method's numbers: accuracies in percent, the sample's deviation, the paired test."""
    ended = runs[runs["score"].notna()]
    tested = asdict(test or Paired(0, float("nan")))
    return {
        "method": name,
        "n": len(ended),
        "failed": seeds - len(ended),
        "diverged": int((ended["status"] == "diverged").sum()),
        **{"mean": ended["score"].mean(), "sd": ended["score"].std()},
        **{metric: ended[metric].mean() for metric in ("nll", "ece")},
        "trainings": ended["trainings"].max() if len(ended) else None,
        "trained": _trained(ended),
        **{key: tested[key] for key in ("difference", "low", "high", "p_t", "p_holm")},
        "verdict": test.verdict if test else "",
        "errors": "; ".join(sorted({text.splitlines()[-1] for text in runs["error"].dropna()})),
    }


def _trained(runs: pd.DataFrame) -> str:
    """What a method made of the model, in words."""
    extra = [json_object(text) for text in runs["extra"]]
    if extra and all(each.get("left") for each in extra):
        return "left as it is"
    found = zip(extra, runs["temperature"], strict=True)
    temperatures = [each.get("temperature", T) for each, T in found]
    T = sum(temperatures) / len(temperatures) if temperatures else float("nan")
    first = extra[0] if extra else {}
    factor, normed = first.get("lr_factor", 1.0), any(runs["norm"] == "batch")
    if T == 1 == factor and not normed and "temperature" not in first:
        return "plain"
    parts = ["BN"] * normed + [f"T = {T:.3g}"] * (T == T) + [f"lr ×{factor:.3g}"] * (factor != 1)
    return ", ".join(parts) or "–"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side.

    ``runs`` are the store's, ``rows`` has the numbers of each method: n, failed and diverged runs,
    mean and deviation of the test accuracy in percent, NLL, ECE, trainings per seed, what was
    trained, and the difference to the baseline with its interval and p.
    """

    runs: pd.DataFrame
    rows: pd.DataFrame
    baseline: str = "default"

    def verdicts(self) -> list[str]:
        """What the paired tests allow to be said, in words; and why runs failed."""
        lines = []
        for verdict in ("better", "worse", "no evidence"):
            tested = self.rows[self.rows["verdict"] == verdict]
            if len(tested):
                what = f"{verdict} than {self.baseline} (Holm, 5 %)"
                if verdict == "no evidence":
                    what = f"no evidence of a difference at n = {tested['n'].max()}"
                lines.append(f"{what}: {', '.join(tested['method'])}")
        failed = self.rows[self.rows["errors"] != ""]
        return [*lines, *(failed["method"] + ": " + failed["errors"])]

    def table(self) -> Table:
        """The rows as a table. A method with a failed run is not ranked: that would flatter it."""
        from tstar.lab.report.tables import Table, marked

        names = [column.format(self.baseline) for column in _COLUMNS]
        cells = [_cells(row) for row in self.rows.to_dict("records")]
        frame = require("pandas", "lab").DataFrame(cells, columns=names)
        marks = marked(self.rows["mean"].where(self.rows["failed"] == 0).rename(names[1]))
        first = self.runs.iloc[0]
        title = f"{first['dataset']}, {first['model']}"
        return Table("table", title, frame, _NOTE, marks=marks, labels=len(names))

    def __str__(self) -> str:
        return "\n".join([self.table().markdown(), *self.verdicts()])

    def save(self, folder: str | Path, about: str = "") -> list[Path]:
        """Write ``table.md``, with ``about`` on top, and ``table.csv``, numbers in full."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / "table.md", target / "table.csv"]
        paths[0].write_text(f"{about}\n\n{self}\n", encoding="utf-8")
        self.rows.map(disarmed).to_csv(paths[1], index=False)
        return paths


def _cells(row: Mapping[str, Any]) -> list[str]:
    """A row as text, without marks."""

    def text(value: Any, form: str, none: str = "–", before: str = "") -> str:
        return none if value is None or value != value else f"{before}{value:{form}}"

    half = None if row["high"] is None else row["high"] - row["difference"]
    count = f"{row['n']}" + (f" ({row['failed']} failed)" if row["failed"] else "")
    return [
        row["method"],
        text(row["mean"], ".2f") + text(row["sd"], ".2f", "", " ± "),
        count + (f" ({row['diverged']} diverged)" if row["diverged"] else ""),
        text(row["trainings"], ".0f"),
        row["trained"],
        text(row["difference"], "+.2f", "") + text(half, ".2f", "", " ± "),
        text(row["p_holm"], ".3f", ""),
        text(row["nll"], ".3f"),
        text(row["ece"], ".3f"),
    ]
