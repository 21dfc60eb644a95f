"""``tstar runs``: list, show, export and merge what is in a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from tstar.errors import unknown
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import AsJson, OfStudy, Store, Where, about
from tstar.lab.cli.terminal import counted, duration, show, tell, tell_json
from tstar.lab.sweep.spec import FIELDS, LABELS, STATUSES, TABLE, opened
from tstar.text import printable

runs = typer.Typer(help="List, show, export and merge stored runs.", no_args_is_help=True)
app.add_typer(runs, name="runs", rich_help_panel=RESEARCH)

_EMPTY = "–"
_ALWAYS = ("dataset", "model", "temperature", "seed")
# What may be listed, where runs differ in it: every field, and the columns that say so.
_LISTED = {n: label for n, label in LABELS.items() if TABLE[n].metadata.get("listed", n in FIELDS)}


@runs.command("ls")
def list_runs(
    store: Store = Path("runs.db"),
    status: Annotated[str | None, about("Only done, diverged or failed runs.")] = None,
    where: Where = None,
    study: OfStudy = None,
    limit: Annotated[int, about("Show at most this many rows.", min=1)] = 100,
    as_json: AsJson = False,
) -> None:
    """List the runs of a store, with the reason of each failure.

    Example: tstar runs ls runs.db --status failed --where 'dataset == "digits" and lr < 0.1'
    """
    from tstar.lab.sweep.transfer import load_runs, rows_of

    if status is not None and status not in STATUSES:
        raise unknown("status", status, STATUSES)
    found = rows_of(load_runs(store, where=where, study=study))
    rows = [row for row in found if status in (None, row["status"])]
    shown = rows[:limit]
    if as_json:
        tell_json([opened(row) for row in shown])
        return
    cells = {name: [_cell(name, row) for row in shown] for name in _LISTED}
    differ = [name for name, column in cells.items() if len({*column}) > 1]
    results = [name for name in cells if name not in FIELDS and {*cells[name]} != {_EMPTY}]
    columns = [name for name in cells if name in (*_ALWAYS, *differ, *results)]
    show([{_LISTED[name]: cells[name][i] for name in columns} for i in range(len(shown))])
    for row in shown:
        if row["status"] == "failed":
            *_, reason = (row["error"] or "no reason is known").strip().splitlines()
            tell(f"{row['key'][:8]}: {reason}")
    counts = sorted(Counter(row["status"] for row in rows).items())
    some = f", the first {limit} shown" if len(rows) > limit else ""
    states = ", ".join(f"{n} {state}" for state, n in counts)
    tell(f"{counted(len(rows), 'run')}{some}: {states or 'none'}")


@runs.command("show")
def show_run(
    store: Store,
    key: Annotated[str, typer.Argument(help="The key of a run, or how it starts.")],
    as_json: AsJson = False,
) -> None:
    """Show everything about one run.

    Example: tstar runs show runs.db 3f9a
    """
    from tstar.lab.sweep.store import Store

    with Store(store) as file:
        row = opened(file.find(key))
    if as_json:
        tell_json(row)
        return
    for name, value in row.items():
        if value is not None:
            said = _cell(name, row) if name in ("started", "finished") else value
            tell(f"{name:>18} {said}")


@runs.command("export")
def export_runs(
    store: Store,
    output: Annotated[Path, typer.Argument(help="The file to write, .parquet or .csv.")],
    where: Where = None,
    study: OfStudy = None,
) -> None:
    """Write the finished runs to one Parquet or CSV file.

    Example: tstar runs export runs.db runs.parquet
    """
    from tstar.lab.sweep.transfer import export

    count = export(store, output, where=where, study=study)
    typer.echo(f"{counted(count, 'run')} → {output}")


@runs.command("merge")
def merge_runs(
    sources: Annotated[list[Path], typer.Argument(help="Stores or exports to merge.")],
    into: Annotated[Path, about("The store to merge into; made if it does not exist.")],
) -> None:
    """Bring the runs of several stores into one.

    Example: tstar runs merge laptop.db cluster.db --into all.db
    """
    from tstar.lab.sweep.transfer import merge

    done = merge(sources, into)
    counts = f"{done.added} added, {done.replaced} replaced, {done.kept} already there"
    typer.echo(f"{counts} → {into}")
    if done.differing:
        keys = ", ".join(key[:8] for key in done.differing[:5])
        runs = counted(len(done.differing), "run")
        typer.echo(f"Two stores differ in {runs}; the first result was kept: {keys}", err=True)


def _cell(name: str, row: Mapping[str, Any]) -> str:
    """A cell as a person reads it."""
    value = row[name]
    if value is None:
        return _EMPTY
    if name == "key":
        return str(value)[:8]
    if name in ("started", "finished"):
        return datetime.fromtimestamp(value).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    if name == "seconds":
        return duration(value)
    if name.endswith("accuracy"):
        return f"{100 * value:.2f}"
    return f"{value:.4g}" if isinstance(value, float) else printable(value)
