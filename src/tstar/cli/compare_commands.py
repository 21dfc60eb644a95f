"""``tstar compare``: methods side by side, with a live table and a paired test."""

from __future__ import annotations

import platform
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tstar.bars import quiet
from tstar.cli.app import RESEARCH, app
from tstar.cli.options import DATA, AsJson, DataRoot, Features, Lr, Model, OldOut, Size
from tstar.cli.printing import tell_json
from tstar.cli.wording import in_options
from tstar.errors import TstarError

if TYPE_CHECKING:
    from tstar.comparing.statistics import Row, Run
    from tstar.data import DataSet

_FEATURES = 64  # of networks of adjustable width: every method is trained on every seed


@app.command(rich_help_panel=RESEARCH)
def compare(
    ctx: typer.Context,
    data: Annotated[str, typer.Option(help=DATA)] = "digits",
    model: Model = "resnet10",
    methods: Annotated[
        str, typer.Option(help="Names of methods, comma-separated; 'list' prints them all.")
    ] = "default,sqrt-m,insert-ln,ours-cn",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 10,
    features: Features = None,
    teacher_features: Annotated[
        int | None,
        typer.Option(help="M of the teacher, for distillation; twice the student's by default."),
    ] = None,
    size: Size = None,
    train_samples: Annotated[
        int | None, typer.Option(help="Use this many training samples.")
    ] = None,
    test_samples: Annotated[int | None, typer.Option(help="Use this many test samples.")] = None,
    lr: Lr = 0.1,
    optimizer: Annotated[str, typer.Option(help="Optimizer: sgd, adam or adamw.")] = "sgd",
    batch_size: Annotated[int, typer.Option(help="Samples per step.")] = 128,
    label_smoothing: Annotated[float, typer.Option(help="Label smoothing of every method.")] = 0.0,
    augment: Annotated[
        bool, typer.Option(help="Random crops, flips and rotations, as they suit the data set.")
    ] = True,
    csg: Annotated[
        float | None, typer.Option(help="Difficulty of the data set, if you know it (tstar csg).")
    ] = None,
    val_fraction: Annotated[
        float, typer.Option(help="Share of the training set held out for validation.")
    ] = 0.1,
    baseline: Annotated[
        str, typer.Option(help="The method that the others are compared with.")
    ] = "default",
    data_root: DataRoot = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, … or auto.")] = "cpu",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the tables and the reliability diagram."),
    ] = Path("tstar-compare"),
    as_json: AsJson = False,
    out: OldOut = None,
) -> None:
    """Train several methods, paired by seed, and say which differences are more than noise.

    A network of adjustable width has 64 features, unless --features says otherwise.

    Example: tstar compare --data digits --model resnet10 --methods default,sqrt-m,insert-ln,ours-cn --seeds 5
    """
    from tstar import methods as registry

    if methods.strip() == "list":
        typer.echo("\n".join(registry.list()))
        return
    from tstar import data as data_sets
    from tstar.comparing import plan, save, summarize, to_table
    from tstar.comparing.harness import compare_methods
    from tstar.errors import require
    from tstar.models import names as adjustable
    from tstar.training import Config

    require("matplotlib", "compare")  # missing parts are told before hours of training, not after
    names = methods.split(",")
    trainings = plan(names, seeds, baseline).trainings  # names are checked before data are read
    if features is None and model in adjustable():
        features = _FEATURES
    dataset = data_sets.load(data, root=data_root, size=size)
    if train_samples is not None or test_samples is not None:
        dataset = dataset.subset(train_samples, test_samples)
    config = Config(
        epochs=epochs,
        lr=lr,
        optimizer=optimizer,
        batch_size=batch_size,
        label_smoothing=label_smoothing,
        augment=augment,
        val_fraction=val_fraction,
        device=device,
    )
    runs: list[Run] = []
    stopped = False
    with quiet(), _Live(trainings * epochs, baseline, runs, ctx.command) as live:
        try:
            compare_methods(
                dataset,
                model,
                names,
                seeds=seeds,
                num_features=features,
                teacher_features=teacher_features,
                csg=csg,
                config=config,
                baseline=baseline,
                on_run=live.on_run,
                on_epoch=live.on_epoch,
            )
        except KeyboardInterrupt:
            stopped = True
    rows = summarize(runs, baseline)
    paths = (
        save(runs, rows, out or output, baseline=baseline, about=_about(dataset)) if runs else []
    )
    if as_json:
        tell_json(_record(runs, rows, stopped))
    elif rows:
        console = Console()
        console.print(to_table(rows, baseline, title=f"{dataset.name}, {model}"))
        for sentence in verdicts(rows, baseline):
            console.print(in_options(sentence, ctx.command), highlight=False, markup=False)
        console.print(f"saved: {', '.join(map(str, paths))}", highlight=False, markup=False)
    if stopped:
        Console(stderr=True).print("stopped; the table holds what had finished.")
        raise typer.Exit(130)
    if not any(run.status == "done" for run in runs):
        raise TstarError(
            f"No run succeeded ({len(runs)} failed or diverged); the errors are above."
        )


def verdicts(rows: list[Row], baseline: str) -> list[str]:
    """What the paired tests allow to be said, in words."""
    tested = [row for row in rows if row.paired is not None]
    said = []
    for verdict in ("better", "worse"):
        names = [row.method for row in tested if row.paired and row.paired.verdict == verdict]
        if names:
            said.append(f"{verdict} than {baseline} (Holm, 5 %): {', '.join(names)}")
    unclear = [row.method for row in tested if row.paired and row.paired.verdict == "no evidence"]
    if unclear:
        n = max(row.paired.n for row in tested if row.paired)
        said.append(f"no evidence of a difference at n = {n}: {', '.join(unclear)}")
    said += [f"failed or diverged: {row.method}: {error}" for row in rows for error in row.errors]
    return said


def _about(dataset: DataSet) -> str:
    import torch

    from tstar._version import __version__

    command = shlex.join(["tstar", *sys.argv[1:]])
    return (
        f"`{command}`\n\n{dataset!r}. tstar {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}."
    )


def _record(runs: list[Run], rows: list[Row], stopped: bool) -> dict[str, Any]:
    from tstar.comparing.reliability import reliability_records

    return {
        "rows": [asdict(row) for row in rows],
        "runs": [asdict(run) | {"reliability": reliability_records([run])} for run in runs],
        "stopped": stopped,
    }


class _Live:
    """Progress and a growing table on a terminal; one line per run where stderr is a file."""

    def __init__(self, epochs: int, baseline: str, runs: list[Run], command: Any) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.console = Console(stderr=True)
        self.baseline, self.runs, self.command = baseline, runs, command
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        )
        self.task = self.progress.add_task("starting", total=epochs)
        self.live = Live(console=self.console, transient=True, refresh_per_second=4)

    def __enter__(self) -> _Live:
        if self.console.is_terminal:
            self.live.start()
            self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def on_epoch(self, method: str, seed: int, epoch: int, epochs: int) -> None:
        self.progress.update(
            self.task, advance=1, description=f"{method}, seed {seed}, epoch {epoch}/{epochs}"
        )

    def on_run(self, run: Run) -> None:
        self.runs.append(run)
        if self.console.is_terminal:
            self._draw()
            return
        score = in_options(run.error, self.command) or f"{100 * (run.test_accuracy or 0.0):.2f} %"
        self.console.print(f"{run.method}, seed {run.seed}: {score}", markup=False, highlight=False)

    def _draw(self) -> None:
        from rich.console import Group

        from tstar.comparing import summarize, to_table

        table = to_table(summarize(self.runs, self.baseline), self.baseline)
        self.live.update(Group(table, self.progress))
