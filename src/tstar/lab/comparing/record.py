"""What a comparison found: its runs, one row per method, and the table as the paper prints it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from tstar.imports import require
from tstar.lab.cells import disarmed
from tstar.lab.statistics import Paired, holm, paired

if TYPE_CHECKING:
    from tstar.lab.report.tables import Table

_COLUMNS = ("method", "accuracy [%]", "n", "cost", "trained", "vs {}", "p", "NLL", "ECE")
_NOTE = (
    "Test accuracy at the last epoch, mean ± sample standard deviation over n seeds; best in "
    "bold, second underlined. A run that diverged counts as chance, 1/K. Cost: training runs per "
    "seed (those of a search, and a teacher). Trained: the norm that was inserted before the output "
    "layer, T at the end (the mean; a dash if there is no single one), and what the method "
    "multiplied the learning rate by. Difference in points over the same seeds ± half its 95 % "
    "interval; p from the paired t-test after Holm's correction for the number of methods."
)


@dataclass(frozen=True)
class Run:
    """One method on one seed. Accuracies are shares: 1/K if it diverged, ``None`` if it failed."""

    method: str
    seed: int
    status: str
    test_accuracy: float | None = None
    val_accuracy: float | None = None
    nll: float | None = None
    ece: float | None = None
    trainings: int = 1
    seconds: float = 0.0
    temperature: float | None = None  # at the end; None if there is no single one
    norm: str = "none"  # what the method inserted before the output layer
    lr_factor: float = 1.0  # what it multiplied the learning rate by
    left: bool = False  # whether it decided to leave the model as it is
    error: str = ""


@dataclass(frozen=True)
class Row:
    """A method's line in the table. Accuracies in percent; ``sd`` is the sample's (n − 1).

    ``trained`` says in words what the method made of the model.
    """

    method: str
    n: int
    failed: int
    diverged: int
    mean: float | None
    sd: float | None
    nll: float | None
    ece: float | None
    trainings: int
    trained: str
    errors: str
    paired: Paired | None

    def cells(self) -> list[str]:
        """The columns as text, without marks."""
        test = self.paired or Paired(0, 0.0)
        half = "" if test.high is None else f" ± {test.high - test.difference:.2f}"
        count = f"{self.n}" + (f" ({self.failed} failed)" if self.failed else "")
        return [
            self.method,
            _text(self.mean, ".2f") + ("" if self.sd is None else f" ± {self.sd:.2f}"),
            count + (f" ({self.diverged} diverged)" if self.diverged else ""),
            str(self.trainings),
            self.trained,
            f"{test.difference:+.2f}{half}" if test.n else "",
            "" if test.p_holm is None else f"{test.p_holm:.3f}",
            _text(self.nll, ".3f"),
            _text(self.ece, ".3f"),
        ]


@dataclass(frozen=True)
class Comparison:
    """The runs of a comparison, and the method that the others are tested against."""

    runs: tuple[Run, ...]
    baseline: str = "default"

    def rows(self) -> list[Row]:
        """One row per method, in the order in which they ran, tested against the baseline."""
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(run.method, []).append(run)
        scores = {
            name: {r.seed: 100 * r.test_accuracy for r in runs if r.test_accuracy is not None}
            for name, runs in groups.items()
        }
        base, tests = scores.get(self.baseline, {}), {}
        for name, mine in scores.items():
            seeds = sorted(mine.keys() & base.keys())
            if name != self.baseline and seeds:
                tests[name] = paired([mine[s] for s in seeds], [base[s] for s in seeds])
        for name, p in holm({n: t.p_t for n, t in tests.items() if t.p_t is not None}).items():
            tests[name] = replace(tests[name], p_holm=p)
        return [_row(name, runs, tests.get(name)) for name, runs in groups.items()]

    def verdicts(self) -> list[str]:
        """What the paired tests allow to be said, in words."""
        rows, said = self.rows(), []
        for verdict in ("better", "worse", "no evidence"):
            tested = [row for row in rows if row.paired and row.paired.verdict == verdict]
            if tested:
                n = max(row.paired.n for row in tested if row.paired)
                what = f"{verdict} than {self.baseline} (Holm, 5 %)"
                what = f"no evidence of a difference at n = {n}" if verdict[0] == "n" else what
                said.append(f"{what}: {', '.join(row.method for row in tested)}")
        return [*said, *(f"{row.method}: {row.errors}" for row in rows if row.errors)]

    def table(self, title: str = "Methods side by side") -> Table:
        """The rows as a table. A method with a failed run is not ranked: that would flatter it."""
        from tstar.lab.report.tables import Table, marked

        pandas, rows = require("pandas", "lab"), self.rows()
        names = [column.format(self.baseline) for column in _COLUMNS]
        frame = pandas.DataFrame([row.cells() for row in rows], columns=names)
        ranked = [None if row.failed else row.mean for row in rows]
        marks = marked(pandas.Series(ranked, name=names[1], dtype=float))
        return Table("table", title, frame, _NOTE, marks=marks, labels=len(names))

    def __str__(self) -> str:
        return "\n".join([self.table().markdown(), *self.verdicts()])

    def save(self, folder: str | Path, about: str = "") -> list[Path]:
        """Write ``table.md`` (with ``about`` on top), ``runs.csv`` and ``table.csv``: the files."""
        pandas, target = require("pandas", "lab"), Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / name for name in ("table.md", "runs.csv", "table.csv")]
        paths[0].write_text(f"{about}\n\n{self}\n", encoding="utf-8")
        runs, rows = map(asdict, self.runs), map(asdict, self.rows())
        for path, records in zip(paths[1:], (runs, rows), strict=True):
            frame = pandas.json_normalize([*records], sep="_")
            frame = frame.drop(columns="paired", errors="ignore")  # of the baseline, which has none
            frame.map(disarmed).to_csv(path, index=False)
        return paths


def _row(name: str, runs: Sequence[Run], test: Paired | None) -> Row:
    done = [run for run in runs if run.test_accuracy is not None]
    scores = [100 * (run.test_accuracy or 0.0) for run in done]

    def mean(field: str) -> float | None:
        present = [v for v in (getattr(run, field) for run in done) if v is not None]
        return fmean(present) if present else None

    return Row(
        method=name,
        n=len(done),
        failed=len(runs) - len(done),
        diverged=sum(run.status == "diverged" for run in done),
        mean=fmean(scores) if scores else None,
        sd=stdev(scores) if len(scores) > 1 else None,
        nll=mean("nll"),
        ece=mean("ece"),
        trainings=max(run.trainings for run in runs),
        trained=_trained(done, mean("temperature")),
        errors="; ".join(sorted({run.error for run in runs if run.error})),
        paired=test,
    )


def _trained(done: Sequence[Run], temperature: float | None) -> str:
    """What a method made of the model, in words."""
    if done and all(run.left for run in done):
        return "left as it is"
    first = done[0] if done else Run("", 0, "failed")
    if first.norm == "none" and temperature == 1 == first.lr_factor:
        return "plain"
    said = ["BN"] if first.norm == "batch" else []
    said += [] if temperature is None else [f"T = {temperature:.3g}"]
    said += [] if first.lr_factor == 1 else [f"lr ×{first.lr_factor:.3g}"]
    return ", ".join(said) or "–"


def _text(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"
