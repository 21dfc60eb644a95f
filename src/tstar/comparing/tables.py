"""Rows as the paper prints them: best in bold, second underlined; for people and for files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tstar.comparing.reliability import draw_reliability, reliability_data, reliability_records
from tstar.comparing.statistics import Paired, Row, Run
from tstar.text import disarmed

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from tstar.report.tables.cells import Table

HEADERS = ("method", "accuracy [%]", "n", "cost", "trained", "NLL", "ECE", "vs {}", "p", "p (W)")
NOTE = (
    "Test accuracy at the last epoch, mean ± sample standard deviation over n seeds; best in bold, second "
    "underlined. A run that diverged counts as chance, 1/K. Cost: training runs per seed (those of a search, and a teacher). "
    "Trained: the norm that was inserted before the output layer, T at the end (the mean; a dash where there is no single one), "
    "and what the method multiplied the learning rate by. Difference in points over "
    "the same seeds ± half its 95 % interval; p from the paired t-test after Holm's correction for the "
    "number of methods, p (W) from Wilcoxon's signed-rank test, uncorrected."
)


def cells(row: Row) -> list[str]:
    """A row's columns as plain text, without marks."""
    score = "–" if row.mean is None else f"{row.mean:.2f}"
    if row.sd is not None:
        score += f" ± {row.sd:.2f}"
    count = f"{row.n}" + (f" ({row.failed} failed)" if row.failed else "")
    count += f" ({row.diverged} diverged)" if row.diverged else ""
    return [
        row.method,
        score,
        count,
        str(row.trainings),
        _trained(row),
        "–" if row.nll is None else f"{row.nll:.3f}",
        "–" if row.ece is None else f"{row.ece:.3f}",
        _difference(row.paired),
        _p(None if row.paired is None else row.paired.p_holm),
        _p(None if row.paired is None else row.paired.p_wilcoxon),
    ]


def to_table(rows: Sequence[Row], baseline: str = "default", title: str = "") -> RichTable:
    """The table for a terminal: without NLL, ECE and p (W), which the files have, to fit 80 columns."""
    from tstar.report.tables.markup import to_rich

    return to_rich(_table(rows, baseline, title, leave=("NLL", "ECE", "p (W)")))


def to_markdown(rows: Sequence[Row], baseline: str = "default") -> str:
    """The table for a document, with the note that says how to read it."""
    from tstar.report.tables import markup

    return markup.to_markdown(_table(rows, baseline, f"Methods compared with {baseline}"))


def _table(rows: Sequence[Row], baseline: str, title: str, leave: Sequence[str] = ()) -> Table:
    from tstar.report.tables.cells import Block, Cell, Table

    shown = [i for i, header in enumerate(HEADERS) if header not in leave]
    marks = {1: "best", 2: "second", None: ""}
    body = []
    for row in rows:
        texts = cells(row)
        body.append(tuple(Cell(texts[i], mark=marks[row.rank] if i == 1 else "") for i in shown))
    return Table(
        name="comparison",
        title=title,
        columns=tuple(HEADERS[i].format(baseline) for i in shown),
        blocks=(Block(tuple(body)),),
        note=NOTE,
        notes=tuple(f"{row.method}: {error}" for row in rows for error in row.errors),
    )


def to_csv(rows: Sequence[Row]) -> str:
    """One line per method, every number in full."""
    flat = []
    for row in rows:
        test = asdict(row.paired) if row.paired else {}
        record = asdict(row) | {"errors": "; ".join(row.errors)}
        del record["paired"]
        names = ("n", "difference", "low", "high", "p_t", "p_wilcoxon", "p_holm")
        flat.append(record | {f"paired_{name}": test.get(name) for name in names})
    return _csv(flat)


def runs_to_csv(runs: Sequence[Run]) -> str:
    """One line per run, without its reliability diagram, which has a file of its own."""
    return _csv([asdict(replace(run, reliability=None)) for run in runs], leave=("reliability",))


def save(
    runs: Sequence[Run], rows: Sequence[Row], folder: str | Path, *, baseline: str, about: str
) -> list[Path]:
    """Write a comparison into a folder.

    ``table.csv``, ``table.md`` (with ``about`` on top), ``runs.csv``, ``reliability.csv`` (one line for
    each run and bin of confidence) and its drawing, ``reliability.svg``.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    texts = {
        "runs.csv": runs_to_csv(runs),
        "table.csv": to_csv(rows),
        "table.md": f"{about}\n\n{to_markdown(rows, baseline)}",
    }
    if records := reliability_records(runs):
        texts["reliability.csv"] = _csv(records)
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    paths = [target / name for name in texts]
    if panels := reliability_data(runs):
        from tstar.report.style import save as save_figure

        # Last: whatever happens to a picture, the numbers are on the disk.
        paths.append(save_figure(draw_reliability(panels), target / "reliability.svg"))
    return paths


def _csv(records: Sequence[dict[str, object]], leave: Sequence[str] = ()) -> str:
    text = io.StringIO()
    if records:
        names = [name for name in records[0] if name not in leave]
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: disarmed(v) for k, v in record.items()} for record in records)
    return text.getvalue()


def _trained(row: Row) -> str:
    """What a method made of the model, in words."""
    if row.left:
        return "left as it is"
    if row.norm in (None, "none") and row.temperature == 1 == row.lr_factor:
        return "plain"
    said = {"batch": ["BN"], "layer": ["LN"]}.get(row.norm, [])
    said += [] if row.temperature is None else [f"T = {row.temperature:.3g}"]
    said += [] if row.lr_factor == 1 else [f"lr ×{row.lr_factor:.3g}"]
    return ", ".join(said) or "–"


def _difference(test: Paired | None) -> str:
    if test is None:
        return ""
    half = "" if test.high is None else f" ± {test.high - test.difference:.2f}"
    return f"{test.difference:+.2f}{half}"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
