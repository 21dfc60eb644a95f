"""The whole report: figures, tables and page into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tstar.errors import TstarError
from tstar.lab.files import written
from tstar.lab.report.catalogue import FIGURES
from tstar.lab.report.headline import Headline, headline
from tstar.lab.report.page import build_page
from tstar.lab.report.records import Records, load
from tstar.lab.report.style import format_of, save
from tstar.lab.report.tables import (
    Table,
    advice_table,
    conditions_table,
    methods_table,
    paper_tables,
)

PICTURES = 4  # of one figure in the folder


@dataclass(frozen=True)
class Written:
    """What a report consists of."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Table, ...]
    headline: Headline | None
    missing: tuple[str, ...]
    command: str

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "page": str(self.page),
            "figures": [str(path) for path in self.figures],
            "tables": [table.name for table in self.tables],
            "headline": self.headline and asdict(self.headline),
            "missing": list(self.missing),
            "command": self.command,
        }


def write_report(
    runs: str | os.PathLike[str],
    folder: str | os.PathLike[str] = "report",
    *,
    formats: Sequence[str] = ("svg",),
    fits: bool = True,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
    **options: Any,
) -> Written:
    """Make a report of a store: ``index.html``, ``figures/`` and ``tables/``.

    The folder has the first four pictures of a figure; ``tstar figure`` draws all of them.

    Args:
        runs: a store (``.db``), or an export of one (``.parquet``, ``.csv``).
        folder: the folder to write.
        formats: the formats of the figures in the folder, any of svg, pdf, png.
        fits: whether to fit coefficients for the paper's three tables of them.
        progress: called with what is done, the total, and what is next.
        options: metric, average, variant, coefficients, where and study, as for
            :func:`tstar.lab.report.load`.

    Returns:
        What was written.
    """
    for kind in formats:
        format_of(f"figure.{kind}")
    plots = [plot for plot in FIGURES.values() if plot.needs_runs]
    target, total = Path(folder), len(plots) + 3
    progress(0, total, "reading runs")
    records = load(runs, **options)
    missing: list[str] = []

    def tried(what: str, make: Callable[[Records], Any]) -> list[Any]:
        try:
            return [make(records)]
        except TstarError as error:
            missing.append(f"{what}: {error}")
            return []

    files, figures = [], []
    for i, plot in enumerate(plots):
        progress(i + 1, total, f"figure {plot.name}")
        for frame in tried(plot.title, plot.data):
            figures.append((plot, frame))
            for number, part in enumerate(plot.parts(frame)[:PICTURES], 1):
                figure = plot.draw(part)
                stem = plot.name if number == 1 else f"{plot.name}-{number}"
                files += [save(figure, target / "figures" / f"{stem}.{kind}") for kind in formats]
    progress(total - 2, total, "tables")
    # The advice first, which the page is about; then the paper's tables, then ours.
    tables = tried("Advice table", advice_table)
    found, reasons = paper_tables(records, fits=fits)
    missing += reasons
    tables += [*found, *tried("Conditions table", conditions_table)]
    tables += tried("Methods table", methods_table)
    for table in tables:
        table.write(target / "tables")
    progress(total - 1, total, "page")
    first = next(iter(tried("Headline", headline)), None)
    command = records.command("report") + ("" if fits else " --no-fits")
    page = target / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    with written(page) as part:  # a browser that reloads never sees half a page
        text = build_page(records, command, first, figures, tables, missing)
        part.write_text(text, encoding="utf-8")
    progress(total, total, "done")
    return Written(page, tuple(files), tuple(tables), first, tuple(missing), command)
