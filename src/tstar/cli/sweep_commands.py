"""``tstar sweep``: the runs of a study."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tstar.cli.app import RESEARCH, app
from tstar.cli.options import AsJson, DataRoot
from tstar.cli.printing import tell_json
from tstar.cli.progress import duration, progress, state_of
from tstar.cli.runs_commands import counted
from tstar.errors import TstarError, unknown
from tstar.text import printable

if TYPE_CHECKING:
    from tstar.sweep.engine import LocalEngine
    from tstar.sweep.run import Tally
    from tstar.sweep.study import Study


@app.command(rich_help_panel=RESEARCH)
def sweep(
    study: Annotated[Path, typer.Argument(help="The study, a TOML file.")],
    store: Annotated[Path, typer.Option(help="The SQLite file of results.")] = Path("runs.db"),
    engine: Annotated[str, typer.Option(help="Where to run: local or ray.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at once; one per GPU or core by default.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, for --engine ray.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, …; an error where there is none.")
    ] = "auto",
    gpus_per_run: Annotated[
        float | None, typer.Option(help="Share of a GPU for each run, such as 0.25.")
    ] = None,
    checkpoint: Annotated[
        float | None,
        typer.Option(help="Minutes between checkpoints, from which a killed run resumes."),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            help="Log to tensorboard:FOLDER, mlflow:FOLDER or wandb:PROJECT; may be repeated."
        ),
    ] = None,
    data_root: DataRoot = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check every part, count and estimate; train nothing."),
    ] = False,
    max_runs: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many results.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="I/N: do the I-th of N parts of the study, each into a store of its own."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train every run of a study that the store does not have yet; stop and resume at any time.

    Example: tstar sweep studies/small/smoke.toml --store runs.db --workers 2
    """
    from tstar.sweep import sweep as run
    from tstar.sweep.engine import ENGINES, LocalEngine
    from tstar.sweep.study import load_study
    from tstar.sweep.writers import writer

    console = Console(stderr=True)
    root = None if data_root is None else str(data_root)
    share = None if part is None else _part(part)
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if dry_run:
        # Ray's nodes are not asked: the estimate is of a machine like this one.
        there = LocalEngine(workers, device, None if engine == "ray" else gpus_per_run)
        read = load_study(study)
        _dry_run(read if share is None else read.part(*share), store, root, there, as_json)
        return
    writers = [writer(*text.partition(":")[::2]) for text in log or []]

    def on_run(row: Mapping[str, Any]) -> None:
        for write in writers:
            write(row)

    with only_json(as_json), progress(console, "reading data …") as update:
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
                update=lambda tally: update(tally.finished, tally.total, state_of(tally)),
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
        tell_json({name: getattr(tally, name) for name in names})
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
    study: Study, store: Path, root: str | None, engine: LocalEngine, as_json: bool
) -> None:
    """The number of runs, what is done, and what the rest will cost; any part that fails is an error."""
    from tstar.sweep.estimate import estimate
    from tstar.sweep.plan import make_plan
    from tstar.sweep.store import Store

    console, facts = Console(highlight=False), dict[str, Any]()
    slots, device = engine.slots, engine.devices[0]
    try:
        with ExitStack() as stack:
            opened = stack.enter_context(Store(store)) if store.exists() else None
            plan = make_plan(study, opened, data_root=root, csg=False)
        cost = estimate(plan, data_root=root, device=device) if plan.todo else None
    except TstarError as error:
        facts = {"study": study.name, "runs": len(study), "problem": str(error)}
        if as_json:
            tell_json(facts)
            raise typer.Exit(1) from error
        console.print(f"{printable(study.name)}: {counted(len(study), 'run')}", markup=False)
        raise
    counts = plan.counts()
    facts = {
        "study": study.name,
        "runs": len(plan.specs),
        "status": counts,
        "to_do": len(plan.todo),
        "workers": slots,
        "device": device,
        "worker_seconds": None if cost is None else round(cost.seconds, 3),
        "wall_seconds": None if cost is None else round(cost.seconds / slots, 1),
    }
    if as_json:
        tell_json(facts)
        return
    console.print(f"{printable(study.name)}: {counted(len(plan.specs), 'run')}", markup=False)
    for state, count in sorted(counts.items()):
        console.print(f"  {count:>6} {state}")
    if cost is not None:
        console.print(
            f"  to do: {counted(cost.runs, 'run')}, about {duration(cost.seconds)} of one worker, "
            f"{duration(cost.seconds / slots)} with {slots} on {device} (probe of {cost.probed} of {counted(cost.kinds, 'kind')})"
        )
