"""``tstar fit``, ``paper``, ``report`` and ``figure``: what a store of runs says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tstar.errors import TstarError
from tstar.lab.cli import options
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import AsJson, Metric, OfStudy, Where, about, given
from tstar.lab.cli.terminal import ERRORS, answer, tell, tell_json

if TYPE_CHECKING:
    import pandas as pd

Variant = Annotated[
    str | None, about("Judge base, csg, cn, csgcn or your own set (.json), not the law.")
]
Interpolation = Annotated[str, about("Accuracy is linear in lnT, or in T as in the paper.")]


@app.command(rich_help_panel=RESEARCH)
def fit(
    runs: options.Runs,
    variant: Annotated[
        str | None, about("Formula to fit: base, csg, cn or csgcn (as by default).")
    ] = None,
    metric: Metric = "val",
    interpolation: Interpolation = "lnT",
    output: options.MaybeOutput = None,
    per_environment: Annotated[
        bool, about("One fit per model and data set.", "--per-environment")
    ] = False,
    cross_validate: Annotated[
        bool, about("Leave out one data set at a time.", "--cross-validate")
    ] = False,
    bootstrap: Annotated[int, about("Refits for each interval; 0 for none.")] = 40,
    restarts: Annotated[int, about("Runs of the optimizer, for more than two coefficients.")] = 3,
    seed: options.Seed = 0,
    where: Where = None,
    study: OfStudy = None,
    as_json: AsJson = False,
) -> None:
    """Fit the temperature formula's coefficients to your runs.

    Example: tstar fit runs.db --variant csgcn -o coefficients.json
    """
    from tstar.lab import fitting
    from tstar.lab.report.tables import FITTED, fitted

    how: Any = {"metric": metric, "interpolation": interpolation, "restarts": restarts}
    how |= {"seed": seed}
    if sum((per_environment, cross_validate, output is not None)) > 1:
        raise TstarError("Choose one of --per-environment, --cross-validate and -o at a time.")
    if per_environment and variant not in (None, "base"):
        raise TstarError(
            f"--per-environment fits α and β alone, got --variant {variant}: csg and K are the same "
            "throughout a data set. Leave --variant out."
        )
    source = _source(runs, where, study)
    if per_environment or cross_validate:
        name = "environments" if per_environment else "corrections"
        chosen = {} if per_environment else {"variant": variant}
        with ERRORS.status("fitting…"):
            frame = FITTED[name](source, **how, **chosen)
        if as_json:
            tell_json({"rows": frame.to_dict("records"), "notes": frame.attrs["notes"]})
        else:
            typer.echo(fitted(name, frame, fitting.How(**how)).text())
        return
    with ERRORS.status("fitting…"):
        result = fitting.fit(source, variant or "csgcn", bootstrap=bootstrap, **how)
    answer(result, as_json)
    if output is not None:
        result.coefficients.save(output)
        tell(f"saved: {output}", console=ERRORS)


@app.command(rich_help_panel=RESEARCH)
def paper(
    table: Annotated[str | None, given("Name of a table; without it, all are listed.")] = None,
    runs: Annotated[Path | None, about("Your store, for the same table from your runs.")] = None,
    metric: Metric = "test",
    interpolation: Interpolation = "lnT",
    where: Where = None,
    study: OfStudy = None,
    as_json: AsJson = False,
) -> None:
    """Show a table of the paper, and the same from your own runs.

    Example: tstar paper datasets --runs runs.db
    """
    import tstar.lab.paper as data
    from tstar.lab.paper.catalogue import SPECS
    from tstar.lab.report.tables import own_tables, printed_tables

    if table is None:
        for number, (name, one) in enumerate(SPECS.items(), 1):  # the paper's come first
            place = f"Table {number}" if one.label else "–"
            tell(f"{name:16} {place:8} {one.caption}")
        return
    shown, own = printed_tables(table), []
    if runs is not None:
        source = _source(runs, where, study)
        how: Any = {"metric": metric, "interpolation": interpolation}
        own = own_tables(table, source, **how)
    if as_json:
        found = {"paper": data.table(table).to_dict("records")}
        if own:
            cells = [one.frame.assign(table=one.title).to_dict("records") for one in own]
            found["yours"] = [row for rows in cells for row in rows]
        tell_json(found)
        return
    parts = [one.text() for one in shown]
    if table == "transformers":
        parts += [f"csgcn: {text}" for text in data.table("footnotes")["text"]]
    if own:
        parts += ["The same from your runs", *(one.text() for one in own)]
    typer.echo("\n\n".join(parts))


def _source(runs: Path, where: str | None, study: str | None) -> pd.DataFrame | Path:
    """The store itself, which a fit then names, or the runs of it that were asked for."""
    from tstar.lab.curves import read

    return runs if where is study is None else read(runs, where, study)


@app.command(rich_help_panel=RESEARCH)
def report(
    runs: options.Runs,
    output: options.Output = Path("report"),
    metric: Metric = "test",
    variant: Variant = None,
    no_fits: Annotated[bool, about("No tables of fitted coefficients.", "--no-fits")] = False,
    where: Where = None,
    study: OfStudy = None,
) -> None:
    """Make a page with the paper's figures and tables from your runs.

    Example: tstar report runs.db -o report/
    """
    from tstar.lab.report import write_report

    how: dict[str, Any] = {"metric": metric, "variant": variant, "where": where, "study": study}
    with ERRORS.status("drawing and fitting…"):
        made = write_report(runs, output, fits=not no_fits, **how)
    for table in made.tables[:1]:
        typer.echo(f"{table.text()}\n")
    for reason in made.missing:
        tell(f"not shown: {reason}", "dim")
    tell(f"page: {made.page}")


@app.command(rich_help_panel=RESEARCH)
def figure(
    name: Annotated[str | None, given("Name of a figure; without it, all are listed.")] = None,
    runs: Annotated[Path | None, given("A store of runs.")] = None,
    output: options.MaybeOutput = None,
    metric: Metric = "test",
    variant: Variant = None,
    where: Where = None,
    study: OfStudy = None,
    as_list: Annotated[bool, about("List the figures, and the paper's.", "--list")] = False,
    as_json: Annotated[bool, about("Print the figure's data, and do not draw.", "--json")] = False,
) -> None:
    """Draw one figure (as NAME.svg by default; .pdf, .png too), or print its data.

    The figures of the softmax, the loss and the model need no runs.

    Example: tstar figure heatmaps-bn runs.db -o heatmaps.pdf
    """
    from tstar.lab.report import FIGURES, get_figure, load, save
    from tstar.lab.report.style import format_of

    if name is None or as_list:
        every = FIGURES.values()
        tell("\n".join(f"{one.name:20} {one.paper or 'ours':14} {one.title}" for one in every))
        return
    plot, target = get_figure(name), output or Path(f"{name}.svg")
    format_of(target)
    how: Any = {"metric": metric, "variant": variant, "where": where, "study": study}
    frame = plot.frame(None if runs is None else load(runs, **how))
    if as_json:
        tell_json(frame.to_dict("records"))
        return
    for number, part in enumerate(plot.parts(frame), 1):
        path = target if number == 1 else target.with_stem(f"{target.stem}-{number}")
        typer.echo(save(plot.draw(part), path))
