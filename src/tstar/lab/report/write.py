"""The whole report: figures and tables into a folder, and one page of them that escapes every text."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tstar._version import __version__
from tstar.errors import TstarError
from tstar.lab.files import written
from tstar.lab.report.catalogue import FIGURES, Plot
from tstar.lab.report.records import SETTING, Records, load, text
from tstar.lab.report.style import inline_svg, save
from tstar.lab.report.tables import (
    FILLED,
    FITTED,
    Table,
    advice_table,
    conditions_table,
    own_tables,
)
from tstar.lab.sweep.provenance import commit
from tstar.lab.sweep.spec import FIELDS, LABELS, STUDY, json_object
from tstar.text import printable

if TYPE_CHECKING:
    from markupsafe import Markup

PICTURES = 4  # of one figure in the folder


@dataclass(frozen=True)
class Pictured:
    """A figure of a report: its first pictures, how many there are, and what draws all."""

    plot: Plot
    pictures: tuple[Markup, ...]
    count: int
    command: str


@dataclass(frozen=True)
class Written:
    """What a report consists of. The table that a report is about comes first, if there is one."""

    page: Path
    tables: tuple[Table, ...]
    missing: tuple[str, ...]


def write_report(
    runs: str | os.PathLike[str],
    folder: str | os.PathLike[str] = "report",
    *,
    fits: bool = True,
    **options: Any,
) -> Written:
    """Make a report of a store: ``index.html``, ``figures/`` and ``tables/``.

    Page and folder have the first four pictures of a figure as SVG; ``tstar figure`` draws all of
    them, and in other formats.

    Args:
        runs: a store (``.db``), or an export of one (``.parquet``, ``.csv``).
        folder: the folder to write.
        fits: whether to fit coefficients for the paper's three tables of them.
        options: as for :func:`tstar.lab.report.load`.
    """
    plots = [plot for plot in FIGURES.values() if plot.needs_runs]
    target, records = Path(folder), load(runs, **options)
    missing: list[str] = []

    def tried(what: str, make: Callable[..., Any], *arguments: Any) -> list[Any]:
        try:
            found = make(*arguments)
        except TstarError as error:
            missing.append(f"{what}: {error}")
            return []
        return found if isinstance(found, list) else [found]

    figures: list[Pictured] = []
    for plot in plots:
        figures += tried(plot.title, _drawn, plot, records, target / "figures")
    tables: list[Table] = tried("What was gained", advice_table, records)
    for name in [name for name in FILLED if fits or name not in FITTED]:
        found = tried(f"Table {name}", own_tables, name, records.conditions, records.metric)
        # A data set with one model is a column of the first table already.
        tables += [one for one in found if name != "models" or len(one.frame.columns) > 2]
    tables += tried("Conditions", conditions_table, records)
    for table in tables:
        table.write(target / "tables")
    command = records.command("report") + ("" if fits else " --no-fits")
    page = target / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    with written(page) as part:  # a browser that reloads never sees half a page
        part.write_text(_page(records, command, figures, tables, missing), encoding="utf-8")
    return Written(page, tuple(tables), tuple(missing))


def _drawn(plot: Plot, records: Records, folder: Path) -> Pictured:
    """Draw a figure, and write its pictures."""
    parts = plot.parts(plot.frame(records))
    pictures = []
    for number, part in enumerate(parts[:PICTURES], 1):
        figure = plot.draw(part)
        stem = plot.name if number == 1 else f"{plot.name}-{number}"
        save(figure, folder / f"{stem}.svg")
        pictures.append(inline_svg(figure, f"{plot.title} ({number} of {len(parts)})"))
    command = f"{records.command('figure', plot.name)} -o {plot.name}.svg"
    return Pictured(plot, tuple(pictures), len(parts), command)


def _page(
    records: Records,
    command: str,
    figures: Sequence[Pictured],
    tables: Sequence[Table],
    missing: Sequence[str],
) -> str:
    """The page's text."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else printable(value, lines=True)

    loader = PackageLoader("tstar.lab.report", "")
    page = Environment(autoescape=True, finalize=shown, loader=loader, trim_blocks=True)
    page.filters["source"] = lambda name: Markup(loader.get_source(page, name)[0])
    return page.get_template("template.html").render(
        title=f"Softmax temperatures: {Path(records.path).name}",
        facts=facts(records),
        figures=figures,
        tables=tables,
        missing=missing,
        origin=origin(records, command),
    )


def facts(records: Records) -> list[tuple[str, str]]:
    """Pairs of a word and its value: how many runs, and each field that is not the default."""
    frame = records.frame
    counts = frame["status"].value_counts() if "status" in frame else {}
    by_status = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    pairs = [("runs", f"{len(frame):,}" + (f" ({by_status})" if by_status else ""))]
    for name in (name for name in STUDY if name in frame):
        listed = values(frame[name])
        if listed and (name in SETTING or listed != text(FIELDS[name].default)):
            pairs.append((LABELS[name], listed))
    return pairs


def values(column: pd.Series, most: int = 12) -> str:
    """The distinct values of a column, in order; how many there are if they are too many."""
    distinct = sorted(column.dropna().unique(), key=lambda v: (isinstance(v, str), v))
    texts = [text(v if isinstance(v, str) else float(v)) for v in distinct]
    if len(texts) > most:
        return f"{len(texts)} values, {texts[0]} to {texts[-1]}"
    return ", ".join(texts)


def origin(records: Records, command: str) -> list[tuple[str, str]]:
    """Where every number comes from: the command, the store, and the versions of both sides."""
    frame, code = records.frame, commit()
    at = f" (commit {code})" if code else ""
    pairs = [
        ("command", command),
        ("store", f"{Path(records.path).name}, SHA-256 {records.checksum}"),
        ("report made with", f"tstar {__version__}{at}, Python {platform.python_version()}"),
        ("the formula", records.formula),
        ("accuracy", f"{records.metric}; {records.chosen_on} accuracy chose the best T of a grid"),
        ("average", "mean over seeds, median in heat maps and the paper's tables of results"),
    ]
    versions = pd.DataFrame([json_object(line) for line in set(frame.get("versions", ()))])
    if "commit" in frame and frame["commit"].notna().any():
        versions = versions.join(frame["commit"].drop_duplicates(ignore_index=True), how="outer")
    return pairs + [(f"runs: {name}", values(versions[name])) for name in versions]
