"""``tstar fit`` and ``tstar paper``: coefficients from your runs, and the paper's tables beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tstar.cli.app import RESEARCH, app
from tstar.cli.options import AsJson, Metric, OfStudy, Runs, Where
from tstar.cli.printing import tell, tell_json, wide_console
from tstar.errors import TstarError, require
from tstar.text import printable

if TYPE_CHECKING:
    import pandas as pd


@app.command(rich_help_panel=RESEARCH)
def fit(
    runs: Runs,
    variant: Annotated[str, typer.Option(help="Formula to fit: base, csg, cn or csgcn.")] = "csgcn",
    metric: Metric = "val",
    average: Annotated[str, typer.Option(help="Average over the seeds: mean or median.")] = "mean",
    interpolation: Annotated[
        str, typer.Option(help="Interpolate accuracy linearly in lnT, or in T as in the paper.")
    ] = "lnT",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save the coefficients as JSON.")
    ] = None,
    per_environment: Annotated[
        bool,
        typer.Option("--per-environment", help="Fit each pair of model and data set by itself."),
    ] = False,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate", help="Judge all variants, leaving out one data set at a time."
        ),
    ] = False,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Compare the paper's fit with fits in ln T.")
    ] = False,
    bootstrap: Annotated[int, typer.Option(help="Refits for each interval; 0 for none.")] = 40,
    restarts: Annotated[int, typer.Option(help="Independent runs of the optimizer.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the optimizer and the bootstrap.")] = 0,
    skip: Annotated[
        bool,
        typer.Option(
            "--skip",
            help="Leave out conditions that cannot be used, such as those with too few temperatures.",
        ),
    ] = False,
    where: Where = None,
    study: OfStudy = None,
    as_json: AsJson = False,
    correction: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Fit the temperature formula's coefficients to your runs.

    Example: tstar fit runs.db --variant csgcn -o coefficients.json
    """
    require("scipy", "fit")
    from tstar import fitting

    variant = correction or variant  # --correction is the old name

    common: dict[str, Any] = {"metric": metric, "average": average, "restarts": restarts}
    common |= {"seed": seed, "skip": skip}
    joined = {**common, "interpolation": interpolation}
    tables = [per_environment, cross_validate, alternatives]
    if sum(tables) > 1 or (any(tables) and output is not None):
        raise TstarError(
            "One of --per-environment, --cross-validate, --alternatives and -o must be chosen at a time; "
            "leave the others out."
        )
    source = _source(runs, where, study)
    with Console(stderr=True).status("fitting…"):
        if per_environment:
            table = fitting.per_environment(source, **joined)
            title = "α and β of each environment, accuracy in %"
        elif cross_validate:
            table = fitting.correction_table(source, **joined)
            title = "Accuracy in % on each data set, left out of the fit (CO) or not (GO)"
        elif alternatives:
            table = fitting.alternatives(source, variant, **common)
            title = "Cross-validated mean regret, judged by two interpolations"
        else:
            result = fitting.fit(source, variant, bootstrap=bootstrap, **joined)
    if any(tables):
        _show(table, title, as_json)
        return
    if output is not None:
        result.save(output)
    if as_json:
        tell_json(result.to_dict())
        return
    tell(result)
    if output is not None:
        tell(f"saved: {output}")


@app.command(rich_help_panel=RESEARCH)
def paper(
    table: Annotated[
        str | None, typer.Argument(help="Name of a table; without it, all are listed.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Your store, to show the same table from your runs.")
    ] = None,
    metric: Metric = "test",
    analysis: Annotated[
        bool,
        typer.Option("--analysis", help="Print what the tables say about the variants (Markdown)."),
    ] = False,
    checks: Annotated[
        bool,
        typer.Option(
            "--checks",
            help="Print where the paper's averages and marks disagree with its cells (Markdown).",
        ),
    ] = False,
    where: Where = None,
    study: OfStudy = None,
    as_json: AsJson = False,
) -> None:
    """Show a table of the paper, and the same from your own runs.

    Example: tstar paper datasets --runs runs.db
    """
    require("pandas", "fit")
    import tstar.paper as data

    if analysis or checks:
        from tstar.paper.loading import page

        typer.echo(page("analysis" if analysis else "discrepancies"))
        return
    if table is None:
        if as_json:
            tell_json(data.tables())
            return
        listing = Table(show_header=False, box=None, pad_edge=False)
        for name, caption in data.tables().items():
            listing.add_row(f"[bold]{name}[/]", caption)
        Console().print(listing)
        return
    source = None if runs is None else _source(runs, where, study)
    if as_json:
        from tstar.fitting.record import plain_rows
        from tstar.paper.own_runs import yours

        content: dict[str, Any] = {"paper": plain_rows(data.table(table))}
        if source is not None:
            content["yours"] = plain_rows(yours(table, source, metric=metric))  # type: ignore[arg-type]
        tell_json(content)
        return
    from tstar.report.tables.markup import to_rich
    from tstar.report.tables.measured import own_table, printed_table

    console = wide_console()
    shown = [printed_table(table)]
    if source is not None:
        own = own_table(table, source, metric)  # type: ignore[arg-type]
        shown.append(replace(own, title=f"The same from your runs: {own.title}"))
    for one in shown:
        console.print(to_rich(one, plain=not console.is_terminal))
        for note in one.notes:
            console.print(note, highlight=False, markup=False)
    if table == "transformers":
        for text in data.table("footnotes")["text"]:
            console.print(f"csgcn: {text}", highlight=False)


def _source(runs: Path, where: str | None, study: str | None) -> pd.DataFrame | Path:
    """The store itself, which a fit then names, or the runs of it that were asked for."""
    from tstar.curves import read

    return runs if where is study is None else read(runs, where, study)


def _show(frame: pd.DataFrame, title: str, as_json: bool) -> None:
    notes = frame.attrs.get("notes", [])
    if as_json:
        from tstar.fitting.record import plain_rows

        tell_json({"rows": plain_rows(frame), "notes": notes})
        return
    from tstar.report.tables.measured import HEADINGS

    shown = Table(
        title=title, title_justify="left", box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0)
    )
    digits = [_digits(frame[column]) for column in frame.columns]
    rows = [[*map(_cell, row, digits)] for row in frame.itertuples(index=False)]
    for place, column in enumerate(frame.columns):
        number = frame[column].dtype.kind in "fi"
        # Where there is little room names are folded, and never a number.
        shown.add_column(
            HEADINGS.get(str(column), str(column)),
            justify="right" if number else "left",
            overflow="fold",
            min_width=max(len(row[place]) for row in rows) if number else None,
        )
    for row in rows:
        shown.add_row(*row)
    console = wide_console()
    console.print(shown)
    for note in notes:
        console.print(f"not possible: {printable(note)}", highlight=False, markup=False)


def _digits(column: pd.Series) -> int:
    """The decimals of a column: four digits of its largest number, none where all are whole."""
    if column.dtype.kind != "f" or (column.dropna() % 1 == 0).all():
        return 0
    return int(min(4, max(0, 3 - math.floor(math.log10(column.abs().max())))))


def _cell(value: object, digits: int) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{round(value, digits) + 0.0:.{digits}f}"
    return str(value)
