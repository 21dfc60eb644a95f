"""The whole report: figures, tables and page into a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.formula.coefficients import Coefficients
from tstar.report.catalogue import FIGURES, Plot
from tstar.report.headline import Headline, headline
from tstar.report.page.build import Drawn, build_page
from tstar.report.page.pieces import cut
from tstar.report.page.summary import origin
from tstar.report.records import Records, load
from tstar.report.style import FORMATS, save
from tstar.report.tables.cells import Table
from tstar.report.tables.markup import WRITERS
from tstar.report.tables.measured import paper_tables
from tstar.report.tables.own import advice_table, conditions_table, methods_table

ON_PAGE = 4  # pictures of one figure on the page, and by default in the folder
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Written:
    """What a report consists of."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Table, ...]
    headline: Headline | None
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types."""
        found = self.headline
        return {
            "page": str(self.page),
            "figures": [str(path) for path in self.figures],
            "tables": [table.name for table in self.tables],
            "headline": None if found is None else {**asdict(found), "sentence": found.sentence},
            "missing": list(self.missing),
        }


def write_report(
    runs: str | os.PathLike[str],
    folder: str | os.PathLike[str] = "report",
    *,
    metric: str = "test",
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    formats: Sequence[str] = ("svg",),
    fits: bool = True,
    pictures: int = ON_PAGE,
    title: str | None = None,
    where: str | None = None,
    study: str | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Written:
    """Make a report of a store: ``index.html``, ``figures/``, ``tables/`` and ``report.json``.

    Args:
        runs: a store (``.db``), or an export of one (``.parquet``, ``.csv``).
        metric, variant, coefficients, where, study: as for :func:`tstar.report.records.load`.
        formats: of the figures in the folder, any of svg, pdf, png; the last two take most of the time.
        fits: whether to fit coefficients for the paper's three tables of them, which takes a while.
        pictures: how many of one figure, which has a picture for every dozen conditions or so; 0: all,
            which takes seconds for each. ``tstar figure`` draws all of one figure.
        title: of the page.
        progress: called with what is done, of how many, and what is next.
    """
    for kind in formats:
        if kind not in FORMATS:
            raise unknown("format of a figure", kind, FORMATS)
    if pictures < 0:
        raise TstarError(f"pictures >= 0 must hold (0 for all of them), but got {pictures}.")
    target = Path(folder)
    shown = [plot for plot in FIGURES.values() if plot.takes_runs]
    total = len(shown) + 3
    progress(0, total, "reading runs")
    records = load(
        runs, metric=metric, variant=variant, coefficients=coefficients, where=where, study=study
    )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TstarError(f"The folder {str(target)!r} could not be made: {error}.") from error
    command = records.command("report") + ("" if fits else " --no-fits")
    missing: list[str] = []
    files: list[Path] = []
    drawn: list[Drawn] = []
    for i, plot in enumerate(shown):
        progress(i + 1, total, f"figure {plot.name}")
        try:
            found, paths = _draw(plot, records, target / "figures", formats, pictures)
        except TstarError as error:
            missing.append(f"{plot.title}: {error}")
            continue
        drawn.append(found)
        files += paths
    progress(total - 2, total, "tables")
    tables = _tables(records, fits, missing)
    _write_tables(tables, target / "tables")
    progress(total - 1, total, "page")
    try:
        number: Headline | None = headline(records)
    except TstarError as error:
        number = None
        missing.append(f"Headline: {error}")
    page = target / "index.html"
    page.write_text(
        build_page(
            records,
            title=title or f"Softmax temperatures: {records.name}",
            command=command,
            headline=number,
            figures=drawn,
            tables=tables,
            missing=missing,
        ),
        encoding="utf-8",
    )
    result = Written(page, tuple(files), tuple(tables), number, tuple(missing))
    about = {**result.to_dict(), "origin": dict(origin(records, command))}
    # Inside the folder, paths are relative to it: the folder can be moved.
    about["page"] = page.name
    about["figures"] = [path.relative_to(target).as_posix() for path in files]
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (target / "report.json").write_text(text, encoding="utf-8")
    progress(total, total, "done")
    return result


def _draw(
    plot: Plot, records: Records, folder: Path, formats: Sequence[str], pictures: int
) -> tuple[Drawn, list[Path]]:
    parts = plot.parts(plot.data(records))
    shown, paths = [], []
    for number, part in enumerate(parts[: pictures or None]):
        figure = plot.draw(part)
        stem = plot.name if number == 0 else f"{plot.name}-{number + 1}"
        text, picture = cut(figure)  # drawn once, for the folder and for the page
        for kind in formats:
            paths.append(folder / f"{stem}.{kind}")
            if kind == "svg":
                folder.mkdir(parents=True, exist_ok=True)
                paths[-1].write_text(text, encoding="utf-8")
            else:
                save(figure, paths[-1])
        if number < ON_PAGE:
            shown.append(picture)
    return Drawn(plot, tuple(shown), len(parts) - len(shown)), paths


def _tables(records: Records, fits: bool, missing: list[str]) -> list[Table]:
    own: dict[str, Table] = {}
    for make in (advice_table, conditions_table, methods_table):
        try:
            own[make.__name__] = make(records)
        except TstarError as error:
            missing.append(f"{make.__name__.replace('_', ' ').capitalize()}: {error}")
    found, reasons = paper_tables(records, fits=fits)
    missing += reasons
    # The advice comes first: it is what the page is about.
    first = [own.pop("advice_table")] if "advice_table" in own else []
    return [*first, *found, *own.values()]


def _write_tables(tables: Sequence[Table], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for kind, writer in WRITERS.items():
            (folder / f"{table.name}.{kind}").write_text(writer(table), encoding="utf-8")
