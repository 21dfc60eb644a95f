"""``tstar report`` and ``tstar figure``: what a store shows, as a page and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tstar.cli.app import RESEARCH, app
from tstar.cli.options import AsJson, Metric, OfStudy, Runs, Where
from tstar.cli.printing import tell, tell_json, wide_console
from tstar.cli.progress import progress
from tstar.errors import require, unknown

Variant = Annotated[
    str | None,
    typer.Option(
        help="Judge the paper's base, csg, cn or csgcn, or budget, in place of the law's T for each training."
    ),
]
CoefficientFile = Annotated[
    Path | None,
    typer.Option(help="Judge your own coefficients, a JSON file, in place of the law's T."),
]


@app.command(rich_help_panel=RESEARCH)
def report(
    runs: Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path(
        "report"
    ),
    metric: Metric = "test",
    variant: Variant = None,
    coefficients: CoefficientFile = None,
    formats: Annotated[
        str, typer.Option(help="Formats of the figures, comma-separated: svg, pdf, png.")
    ] = "svg",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    no_fits: Annotated[
        bool, typer.Option("--no-fits", help="Leave out the tables of fitted coefficients.")
    ] = False,
    pictures: Annotated[
        int, typer.Option(min=0, help="At most this many pictures per figure; 0 for all.")
    ] = 4,
    tables: Annotated[bool, typer.Option("--tables", help="Print the tables as well.")] = False,
    where: Where = None,
    study: OfStudy = None,
    as_json: AsJson = False,
) -> None:
    """Make the paper's figures and tables, and one page with all of them, from your runs.

    Example: tstar report runs.db -o report/
    """
    _require()
    from tstar.report import write_report
    from tstar.report.tables.markup import to_rich

    with progress(Console(stderr=True)) as step:
        made = write_report(
            runs,
            output,
            metric=metric,
            variant=variant,
            coefficients=coefficients,
            formats=_formats(formats),
            fits=not no_fits,
            pictures=pictures,
            title=title,
            where=where,
            study=study,
            progress=step,
        )
    if as_json:
        tell_json(made.to_dict())
        return
    for table in made.tables if tables else ():
        wide_console().print(to_rich(table))
    if made.headline is not None:
        tell(made.headline.sentence)
    for reason in made.missing:
        tell(f"not shown: {reason}", "dim")
    tell(f"page: {made.page}")


@app.command(rich_help_panel=RESEARCH)
def figure(
    name: Annotated[
        str | None, typer.Argument(help="Name of a figure; without it, all are listed.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Argument(help="A store of runs, for the figures made from runs.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="NAME.svg by default; .pdf, .png too.")
    ] = None,
    metric: Metric = "test",
    variant: Variant = None,
    coefficients: CoefficientFile = None,
    where: Where = None,
    study: OfStudy = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figure's data in place of drawing it.")
    ] = False,
) -> None:
    """Draw one figure, or print its data.

    Example: tstar figure heatmaps-bn runs.db -o heatmaps.pdf
    """
    _require()
    from tstar.report.catalogue import get_figure
    from tstar.report.plain import plain_data
    from tstar.report.records import load
    from tstar.report.style import save

    if name is None:
        _list(as_json)
        return
    plot = get_figure(name)
    records = None
    if runs is not None:
        records = load(
            runs,
            metric=metric,
            variant=variant,
            coefficients=coefficients,
            where=where,
            study=study,
        )
    data = plot.data(records)
    if as_json:
        tell_json(plain_data(data))
        return
    target = output or Path(f"{name}.svg")
    for number, part in enumerate(plot.parts(data), 1):
        path = target if number == 1 else target.with_stem(f"{target.stem}-{number}")
        save(plot.draw(part), path)
        typer.echo(str(path))


def _list(as_json: bool) -> None:
    from rich.table import Table

    from tstar.report.catalogue import FIGURES

    if as_json:
        content: list[dict[str, Any]] = [
            {"name": p.name, "title": p.title, "reading": p.reading, "needs_runs": p.needs_runs}
            for p in FIGURES.values()
        ]
        tell_json(content)
        return
    shown = Table(show_header=False, box=None, pad_edge=False)
    for plot in FIGURES.values():
        shown.add_row(
            f"[bold]{plot.name}[/]", plot.title, "" if plot.needs_runs else "no runs needed"
        )
    Console().print(shown)


def _formats(text: str) -> list[str]:
    from tstar.report.style import FORMATS

    found = [part.strip().lower() for part in text.split(",") if part.strip()]
    for kind in found:
        if kind not in FORMATS:
            raise unknown("format of a figure", kind, FORMATS)
    return found


def _require() -> None:
    require("matplotlib", "plot")
    require("pandas", "fit")
