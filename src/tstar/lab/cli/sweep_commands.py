"""``tstar sweep``: the runs of a study."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tstar.errors import TstarError
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import DataRoot, Device, about
from tstar.lab.cli.terminal import ERRORS, counted, duration, progress, tell

if TYPE_CHECKING:
    from tstar.lab.sweep.run import Tally
    from tstar.lab.sweep.study import Study

_TRY_AGAIN = 75  # exit code (EX_TEMPFAIL): some runs ran out of time or memory


@app.command(rich_help_panel=RESEARCH)
def sweep(
    words: Annotated[
        list[str], typer.Argument(metavar="STUDY… [KEY=VALUE…]", help="TOML files; keys to change.")
    ],
    store: Annotated[Path, about("The SQLite file of results.")] = Path("runs.db"),
    engine: Annotated[str, about("Where to run: local or ray.")] = "local",
    workers: Annotated[int | None, about("Runs at once; one per GPU or core.", min=1)] = None,
    address: Annotated[str | None, about("Address of a Ray cluster, for --engine ray.")] = None,
    device: Device = "auto",
    gpus_per_run: Annotated[float | None, about("Share of a GPU, such as 0.25.")] = None,
    checkpoint: Annotated[
        float | None, about("Minutes between a run's checkpoints (not of meta-kd).")
    ] = None,
    on_run: Annotated[str | None, about("Call ./file.py:function with each run's row.")] = None,
    data_root: DataRoot = None,
    dry_run: Annotated[
        bool, about("Check and count the runs, time one step; train nothing.", "--dry-run")
    ] = False,
    max_runs: Annotated[int | None, about("Stop after this many results.", min=1)] = None,
    part: Annotated[str | None, about("I/N: the I-th of N parts, into a store of its own.")] = None,
) -> None:
    """Train every run of a study that the store does not have yet; stop and resume at any time.

    Several studies are one queue.

    Example: tstar sweep studies/small/smoke.toml lr=0.03 seed=0,1 --store runs.db --workers 2
    """
    from tstar.lab import own
    from tstar.lab.sweep.study import load_study

    root = None if data_root is None else str(data_root)
    share = None if part is None else _part(part)
    changes = [word for word in words if "=" in word and not word.endswith(".toml")]
    studies = [load_study(word, changes) for word in words if word not in changes]
    if not studies:
        raise TstarError(f"A study must be given, a TOML file, got {' '.join(words)!r}.")
    if dry_run:
        for study in studies:
            mine = study if share is None else study.part(*share)
            _dry_run(mine, store, root, device)
        return
    options: dict[str, Any] = {"engine": engine, "workers": workers, "address": address}
    options |= {"device": device, "gpus_per_run": gpus_per_run, "checkpoint": checkpoint}
    options |= {"data_root": root, "max_runs": max_runs, "part": share}
    options["on_run"] = None if on_run is None else own.load(own.resolve(on_run, Path()))
    tally = sweep_studies(studies, store, options)
    tell(f"{tally} → {store}", console=ERRORS)
    if tally.failed:
        tell(f"See why: tstar runs ls {store} --status failed", console=ERRORS)
    if tally.failed or tally.requeued:
        raise typer.Exit(1 if tally.failed else _TRY_AGAIN)


def sweep_studies(studies: list[Study], store: Path, options: dict[str, Any]) -> Tally:
    """Run the studies, with their progress on the standard error."""
    from tstar.lab.sweep import run_study

    with progress("reading data …") as update:

        def on_tally(tally: Tally) -> None:
            ends = {"diverged": tally.diverged, "failed": tally.failed}
            bad = [f" · {number} {what}" for what, number in ends.items() if number]
            left = f"{duration(tally.seconds_left)} left"
            update(tally.finished, tally.total, "".join([left, *bad]))

        def say(text: str) -> None:
            tell(text, console=ERRORS)

        try:
            return run_study(studies, store, update=on_tally, say=say, **options)
        except KeyboardInterrupt:
            say(f"Stopped; {store} has what is done. The same command goes on from there.")
            raise typer.Exit(130) from None


def _part(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal()):
        raise TstarError(f"--part must be I/N, such as 3/16, got {text!r}.")
    return int(number), int(of)


def _dry_run(study: Study, store: Path, root: str | None, device: str) -> None:
    """How many runs there are and are done, and the time of a step; a broken part is an error."""
    from tstar.lab.sweep.plan import make_plan, measure_step
    from tstar.lab.sweep.store import Store

    with Store(store) if store.exists() else nullcontext() as opened:
        plan = make_plan(study, opened, data_root=root, dry=True)
    tell(f"{study.name}: {counted(len(plan.specs), 'run')}")
    for state, count in sorted(plan.counts().items()):
        tell(f"  {count:>6} {state}")
    if plan.todo:
        seconds = measure_step(plan.todo[0].resolved(study.places), root, device)
        tell(f"  a training step of {plan.todo[0]} takes {1000 * seconds:.3g} ms")
