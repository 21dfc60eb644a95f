"""``tstar sweep``, ``tstar runs …``, ``tstar check``: runs from a study, and a look at what came out."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tstar.cli.app import RESEARCH, USE, app
from tstar.cli.choosing import OfStudy, Where
from tstar.cli.options import OldFigure
from tstar.errors import TstarError
from tstar.text import printable

if TYPE_CHECKING:
    from tstar.sweep.run import Tally
    from tstar.sweep.study import Study

runs = typer.Typer(
    name="runs", help="Look at stored runs, export and merge them.", no_args_is_help=True
)
app.add_typer(runs, rich_help_panel=RESEARCH)

StoreArgument = Annotated[Path, typer.Argument(help="The SQLite file of results.")]
DataRoot = Annotated[
    Path | None, typer.Option(help="Folder of the data sets; TSTAR_DATA by default.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_SHOWN = {
    **{"key": "key", "status": "status", "dataset": "data", "model": "model", "num_features": "M"},
    **{"method": "method", "norm": "norm", "temperature": "T", "lr": "lr", "seed": "seed"},
    **{"val_accuracy": "val %", "test_accuracy": "test %", "seconds": "time", "finished": "ended"},
}
_TIMES = ("started", "heartbeat", "finished")


@app.command(rich_help_panel=RESEARCH)
def sweep(
    study: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
    store: Annotated[Path, typer.Option(help="The SQLite file of results.")] = Path("runs.db"),
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at once; one per GPU or core by default.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …; for the local engine.")] = "auto",
    gpus_per_run: Annotated[
        float | None, typer.Option(help="Share of a GPU for each run, such as 0.25.")
    ] = None,
    checkpoint: Annotated[
        float | None,
        typer.Option(help="Minutes between checkpoints, from which a killed run goes on."),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(help="tensorboard:FOLDER, mlflow:FOLDER or wandb:PROJECT; may be repeated."),
    ] = None,
    data_root: DataRoot = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check every part, count and estimate; train nothing."),
    ] = False,
    max_runs: Annotated[int | None, typer.Option(min=1, help="Stop after so many results.")] = None,
    part: Annotated[
        str | None,
        typer.Option(help="I/N: every N-th run from the I-th on, into a store of its own."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Do every run of a study that the store does not have yet; stop and go on at any time.

    Example: tstar sweep studies/small/smoke.toml --store runs.db --workers 2
    """
    from tstar.sweep import sweep as run
    from tstar.sweep.study import load_study
    from tstar.sweep.writers import writer

    console = Console(stderr=True)
    root = None if data_root is None else str(data_root)
    if dry_run:
        _dry_run(load_study(study), store, root, workers, device, as_json)
        return
    from tstar.cli.progress import SweepProgress

    share = None if part is None else _part(part)
    writers = [writer(*text.partition(":")[::2]) for text in log or []]

    def on_run(row: Mapping[str, Any]) -> None:
        for write in writers:
            write(row)

    with only_json(as_json), SweepProgress(console) as progress:
        try:
            tally = run(
                study,
                store,
                engine=engine,
                workers=workers,
                address=address,
                data_root=root,
                device=device,
                gpus_per_run=gpus_per_run,
                checkpoint=checkpoint,
                update=progress.update,
                on_run=on_run,
                say=lambda text: console.print(text, markup=False),
                max_runs=max_runs,
                part=share,
            )
        except KeyboardInterrupt:
            text = f"Stopped. What is done is in {store}; the same command goes on from there."
            console.print(text, markup=False)
            raise typer.Exit(130) from None
    if as_json:
        names = ("total", "before", "done", "diverged", "failed", "theirs", "retried")
        typer.echo(json.dumps({name: getattr(tally, name) for name in names}, indent=2))
    else:
        _summary(console, tally, store)
    if tally.failed:
        raise typer.Exit(1)


def _part(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal()):
        raise TstarError(f"--part must be I/N, such as 3/16, got {text!r}.")
    return int(number), int(of)


@contextmanager
def only_json(wanted: bool) -> Iterator[None]:
    """Inside, whatever libraries and their processes print goes to the standard error."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _summary(console: Console, tally: Tally, store: Path) -> None:
    console.print(f"{tally} → {store}", highlight=False, markup=False)
    if tally.failed:
        text = f"See why: tstar runs ls {store} --status failed"
        console.print(text, highlight=False, markup=False)


def _dry_run(
    study: Study, store: Path, root: str | None, workers: int | None, device: str, as_json: bool
) -> None:
    """The number of runs, what is done, and what the rest will cost; any part that fails is an error."""
    from contextlib import ExitStack

    from tstar.cli.progress import duration
    from tstar.sweep.engine import LocalEngine
    from tstar.sweep.estimate import estimate
    from tstar.sweep.plan import make_plan
    from tstar.sweep.store import Store

    console, facts = Console(highlight=False), dict[str, Any]()
    slots = LocalEngine(workers, device).slots
    try:
        with ExitStack() as stack:
            opened = stack.enter_context(Store(store)) if store.exists() else None
            plan = make_plan(study, opened, data_root=root, csg=False)
        cost = estimate(plan, data_root=root, device=device) if plan.todo else None
    except TstarError as error:
        facts = {"study": study.name, "runs": len(study), "problem": str(error)}
        if as_json:
            typer.echo(json.dumps(facts, indent=2))
            raise typer.Exit(1) from error
        console.print(f"{printable(study.name)}: {len(study)} runs", markup=False)
        raise
    counts = plan.counts()
    facts = {
        "study": study.name,
        "runs": len(plan.specs),
        "status": counts,
        "to_do": len(plan.todo),
        "workers": slots,
        "worker_seconds": None if cost is None else round(cost.seconds, 1),
        "wall_seconds": None if cost is None else round(cost.seconds / slots, 1),
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    console.print(f"{printable(study.name)}: {facts['runs']} runs", markup=False)
    for state, count in sorted(counts.items()):
        console.print(f"  {count:>6} {state}")
    if cost is not None:
        console.print(
            f"  to do: {cost.runs} runs, about {duration(cost.seconds)} of one worker, "
            f"{duration(cost.seconds / slots)} with {slots} (probe of {cost.probed} of {cost.kinds} kinds)"
        )


@runs.command("ls")
def list_runs(
    store: StoreArgument = Path("runs.db"),
    status: Annotated[
        str | None, typer.Option(help="running, done, diverged or failed only.")
    ] = None,
    where: Where = None,
    study: OfStudy = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many rows.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the runs of a store, with the reason of each failure.

    Example: tstar runs ls runs.db --status failed --where 'dataset == "digits" and lr < 0.1'
    """
    from tstar.errors import unknown
    from tstar.sweep.select import selector
    from tstar.sweep.store import COLUMNS, STATUSES, Store

    if status is not None and status not in STATUSES:
        raise unknown("status", status, STATUSES)
    chosen = selector(where, study)
    with Store(store) as opened:
        found = opened.rows({} if status is None else {"status": status})
        rows = [row for row in found if chosen(row)]
    if as_json:
        typer.echo(json.dumps([_plain(row) for row in rows[:limit]], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name, title in _SHOWN.items():
        numeric = "TEXT" not in COLUMNS[name]
        table.add_column(title, justify="right" if numeric else "left", no_wrap=True)
    for row in rows[:limit]:
        table.add_row(*(Text(_cell(name, row[name])) for name in _SHOWN))
    console = Console()
    if not console.is_terminal:
        console.width = 200  # for a file or a pipe nothing is cut off
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
    console.print(f"{len(rows)} runs{shown}: {states or 'none'}", highlight=False)


@runs.command("show")
def show_run(
    store: StoreArgument,
    key: Annotated[str, typer.Argument(help="The key of a run, or how it starts.")],
    as_json: AsJson = False,
) -> None:
    """Show everything about one run.

    Example: tstar runs show runs.db 3f9a
    """
    from tstar.sweep.store import Store

    with Store(store) as opened:
        row = _plain(opened.find(key))
    if as_json:
        typer.echo(json.dumps(row, indent=2))
        return
    console = Console(highlight=False)
    for name, value in row.items():
        if value is not None:
            shown = _cell(name, value) if name in _TIMES else printable(value, lines=True)
            console.print(f"[bold]{name:>18}[/] ", end="")
            console.print(shown, markup=False, soft_wrap=True)


@runs.command("export")
def export_runs(
    store: StoreArgument,
    output: Annotated[Path, typer.Argument(help="runs.parquet or runs.csv.")],
    where: Where = None,
    study: OfStudy = None,
) -> None:
    """Write the finished runs to one Parquet or CSV file.

    Example: tstar runs export runs.db runs.parquet
    """
    from tstar.sweep.store import Store
    from tstar.sweep.transfer import export

    with Store(store) as opened:
        count = export(opened, output, where=where, study=study)
    typer.echo(f"{count} runs → {output}")


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
            f"{len(done.differing)} runs have other results there than here (the first is kept): "
            + ", ".join(key[:8] for key in done.differing[:5]),
            err=True,
        )


@app.command(rich_help_panel=USE)
def check(
    model: Annotated[str, typer.Option(help="A model's name, such as resnet10 or timm/resnet18.")],
    data: Annotated[str, typer.Option(help="A data set's name, .npz file or image folder.")],
    features: Annotated[int | None, typer.Option(help="M, for models whose width is free.")] = None,
    temperatures: Annotated[
        str | None, typer.Option(help="Comma-separated; around the formula's T by default.")
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for the whole check.")] = 120.0,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings for each temperature.")] = 2,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 0.1,
    optimizer: Annotated[str, typer.Option(help="sgd, adam or adamw.")] = "sgd",
    size: Annotated[int | None, typer.Option(help="Bring images to this many pixels.")] = None,
    data_root: DataRoot = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw accuracy against T into this file."),
    ] = None,
    as_json: AsJson = False,
    figure: OldFigure = None,
) -> None:
    """Train briefly at several temperatures: where is the peak, and where does the formula point?

    Example: tstar check --model resnet10 --features 64 --data digits --budget 60
    """
    from tstar.checking.trial import check as run
    from tstar.cli.progress import check_progress
    from tstar.data import load
    from tstar.models.fitting import fitting_model
    from tstar.training import Config

    loaded = load(data, root=data_root, size=size)

    def make_model() -> Any:
        return fitting_model(model, loaded, features, None)  # check() seeds it

    grid = None
    if temperatures is not None:
        grid = [_number("temperatures", part) for part in temperatures.split(",")]
    with check_progress(Console(stderr=True)) as progress:
        result = run(
            make_model,
            loaded,
            temperatures=grid,
            budget=budget,
            seeds=seeds,
            config=Config(lr=lr, optimizer=optimizer),
            progress=progress,
        )
    figure = figure or output
    if figure is not None:
        result.plot(figure)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    console = Console(highlight=False)
    console.print(str(result), markup=False, soft_wrap=True)
    if figure is not None:
        console.print(f"Figure: {figure}")


def _number(name: str, text: str) -> float:
    from tstar.errors import TstarError

    try:
        return float(text)
    except ValueError:
        raise TstarError(f"{name} must be a number, got {text!r}.") from None


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its JSON columns opened."""
    from tstar.sweep.store import OPENED

    return {
        name: json.loads(value) if name in OPENED and value is not None else value
        for name, value in row.items()
    }


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
        from tstar.cli.progress import duration

        return duration(value)
    if name.endswith("accuracy") and isinstance(value, float):
        return f"{100 * value:.2f}"
    return f"{value:.4g}" if isinstance(value, float) else printable(value)
