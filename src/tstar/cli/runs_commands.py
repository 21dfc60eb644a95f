"""``tstar runs``: list, show, export and merge what is in a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tstar.cli.app import RESEARCH, app
from tstar.cli.options import AsJson, OfStudy, Where
from tstar.cli.printing import tell, tell_json
from tstar.cli.progress import duration
from tstar.sweep.columns import COLUMNS, METRICS, MIXED, json_object
from tstar.text import printable

runs = typer.Typer(
    name="runs", help="Look at stored runs, export and merge them.", no_args_is_help=True
)
app.add_typer(runs, rich_help_panel=RESEARCH)

StoreArgument = Annotated[Path, typer.Argument(help="The SQLite file of results.")]
_SHOWN = {
    **{"key": "key", "status": "status", "dataset": "data", "model": "model", "num_features": "M"},
    **{"method": "method", "norm": "norm", "temperature": "T", "lr": "lr", "seed": "seed"},
    **{"optimizer": "optimizer", "schedule": "schedule", "augment": "augment", "loss": "loss"},
    **{"val_accuracy": "val %", "test_accuracy": "test %", "val_metric": "val metric"},
    **{"test_metric": "test metric", "seconds": "time", "finished": "ended"},
}
_PARTS = ("optimizer", "schedule", "augment", "loss")  # shown where runs differ in them
_TIMES = ("started", "heartbeat", "finished")


@runs.command("ls")
def list_runs(
    store: StoreArgument = Path("runs.db"),
    status: Annotated[
        str | None, typer.Option(help="Only runs in this state: running, done, diverged or failed.")
    ] = None,
    where: Where = None,
    study: OfStudy = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many rows.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the runs of a store, with the reason of each failure.

    Example: tstar runs ls runs.db --status failed --where 'dataset == "digits" and lr < 0.1'
    """
    from tstar.errors import unknown
    from tstar.sweep.columns import STATUSES, opened
    from tstar.sweep.select import asked_by, selector
    from tstar.sweep.store import Store

    if status is not None and status not in STATUSES:
        raise unknown("status", status, STATUSES)
    meets = selector(where)
    with Store(store) as file:
        found = file.rows({} if status is None else {"status": status})
        mine = asked_by(study, file.asked())
        rows = [row for row in found if mine(row) and meets(row)]
    if as_json:
        tell_json([opened(row) for row in rows[:limit]])
        return
    console = Console()
    cells = {n: [_cell(n, row[n]) for row in rows[:limit]] for n in _columns(rows[:limit])}
    cells["lr"] = [_rate(row["lr"], json_object(row["extra"])) for row in rows[:limit]]
    if console.is_terminal:
        same, table = _fitting(cells, console)
        if same:
            tell(f"all: {same}", "dim")
    else:
        console.width = 400  # for a file or a pipe nothing is cut off
        table = _table(cells)
    console.print(table)
    for row in rows[:limit]:
        if row["status"] == "failed":
            lines = (row["error"] or "no reason is known").strip().splitlines()
            console.print(
                f"{row['key'][:8]}: {printable(lines[-1])}", markup=False, highlight=False
            )
    counts = Counter(row["status"] for row in rows)
    shown = f", the first {limit} shown" if len(rows) > limit else ""
    states = ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
    console.print(f"{counted(len(rows), 'run')}{shown}: {states or 'none'}", highlight=False)


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the table shows: a metric's values where a run has them, and parts that tell runs apart."""
    hidden = [n for n in METRICS if all(row[n] is None for row in rows)]
    hidden += [n for n in _PARTS if len({row[n] for row in rows}) < 2]
    return [n for n in _SHOWN if n not in hidden]


def _table(cells: Mapping[str, list[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in cells:
        numeric = "TEXT" not in COLUMNS[name] and name not in MIXED
        table.add_column(_SHOWN[name], justify="right" if numeric else "left", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _fitting(cells: dict[str, list[str]], console: Console) -> tuple[str, Table]:
    """For a terminal: what all runs share, in words; and a table of the rest, as much of it as fits."""
    count = len(cells["key"])
    shared = {n: c[0] for n, c in cells.items() if count > 1 and len(set(c)) == 1 and c[0]}
    same = ", ".join(
        text if "TEXT" in COLUMNS[name] and name != "norm" else f"{_SHOWN[name]} {text}"
        for name, text in shared.items()
    )
    rest = {n: c for n, c in cells.items() if n not in shared and any(c)}
    if "finished" in rest:
        rest["finished"] = [text[5:16] for text in rest["finished"]]  # month to minute
    wide = console.options.update(width=10_000)
    least = ("finished", "seconds", "val_metric", "val_accuracy", "norm", "lr", "status")
    for name in (*least, *_PARTS):
        if console.measure(_table(rest), options=wide).maximum <= console.width:
            break
        rest.pop(name, None)
    return same, _table(rest)


@runs.command("show")
def show_run(
    store: StoreArgument,
    key: Annotated[str, typer.Argument(help="The key of a run, or how it starts.")],
    as_json: AsJson = False,
) -> None:
    """Show everything about one run.

    Example: tstar runs show runs.db 3f9a
    """
    from tstar.sweep.columns import opened
    from tstar.sweep.store import Store

    with Store(store) as file:
        row = opened(file.find(key))
    if as_json:
        tell_json(row)
        return
    console = Console(highlight=False)
    for name, value in row.items():
        if value is not None:
            shown = _cell(name, value) if name in _TIMES else printable(value, lines=True)
            shown = _rate(value, row["extra"]) if name == "lr" else shown
            console.print(f"[bold]{name:>18}[/] ", end="")
            console.print(shown, markup=False, soft_wrap=True)


@runs.command("export")
def export_runs(
    store: StoreArgument,
    output: Annotated[Path, typer.Argument(help="The file to write, .parquet or .csv.")],
    where: Where = None,
    study: OfStudy = None,
) -> None:
    """Write the finished runs to one Parquet or CSV file.

    Example: tstar runs export runs.db runs.parquet
    """
    from tstar.sweep.store import Store
    from tstar.sweep.transfer import export

    with Store(store) as file:
        count = export(file, output, where=where, study=study)
    typer.echo(f"{counted(count, 'run')} → {output}")


@runs.command("merge")
def merge_runs(
    sources: Annotated[list[Path], typer.Argument(help="Stores or exports to merge.")],
    into: Annotated[Path, typer.Option(help="The store to merge into; made if it does not exist.")],
) -> None:
    """Bring the runs of several stores into one.

    Example: tstar runs merge laptop.db cluster.db --into all.db
    """
    from tstar.sweep.transfer import merge

    done = merge(sources, into)
    typer.echo(f"{done.added} added, {done.replaced} replaced, {done.kept} already there → {into}")
    if done.differing:
        typer.echo(
            f"Two stores differ in the results of {counted(len(done.differing), 'run')}, of which the first are kept: "
            + ", ".join(key[:8] for key in done.differing[:5]),
            err=True,
        )


def _rate(lr: object, extra: object) -> str:
    """The learning rate that was asked for, and what the method multiplied it by: 0.1 ×3."""
    factor = extra.get("lr_factor", 1) if isinstance(extra, dict) else 1
    return _cell("lr", lr) + (f" ×{_cell('lr', float(factor))}" if factor != 1 else "")


def _cell(name: str, value: object) -> str:
    if value is None:
        return "–"
    if name == "key":
        return str(value)[:8]
    if name in _TIMES and isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
        except (OverflowError, OSError, ValueError):
            return str(value)
    if name == "seconds" and isinstance(value, int | float):
        return duration(value)
    if name == "augment" and not isinstance(value, str):
        return "true" if value else "false"
    if name.endswith("accuracy") and isinstance(value, float):
        return f"{100 * value:.2f}"
    return f"{value:.4g}" if isinstance(value, float) else printable(value)
