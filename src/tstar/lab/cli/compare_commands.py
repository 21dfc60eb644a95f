"""``tstar compare``: methods side by side, with a paired test."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tstar.errors import TstarError
from tstar.imports import require
from tstar.lab.cli import options
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import AsJson, about
from tstar.lab.cli.terminal import ERRORS, progress, tell, tell_json

if TYPE_CHECKING:
    from tstar.lab.comparing import Comparison, Run

_FEATURES = 64  # of a network of adjustable width: small, since there are many trainings


@app.command(rich_help_panel=RESEARCH)
def compare(
    data: options.Data = "digits",
    model: options.Model = "resnet10",
    methods: Annotated[
        str, about("Comma-separated; 'list' prints all names.")
    ] = "default,sqrt-m,insert-ln,ours-cn",
    seeds: Annotated[int, about("Number of seeds.", min=1)] = 5,
    epochs: options.Epochs = 10,
    features: options.Features = None,
    size: options.Size = None,
    train_samples: Annotated[int | None, about("Training samples to use.")] = None,
    test_samples: Annotated[int | None, about("Test samples to use.")] = None,
    lr: options.Lr = 0.1,
    optimizer: options.Optimizer = "sgd",
    batch_size: options.BatchSize = 128,
    augment: Annotated[bool, about("Random crops, flips, rotations, as suits the data.")] = True,
    val_fraction: Annotated[float, about("Share of the training set for validation.")] = 0.1,
    baseline: Annotated[str, about("The method to compare with.")] = "default",
    data_root: options.DataRoot = None,
    device: options.Device = "cpu",
    output: options.Output = Path("tstar-compare"),
    as_json: AsJson = False,
) -> None:
    """Train several methods, paired by seed, and say which differences are more than noise.

    A network of adjustable width has 64 features, unless --features says otherwise.

    Example: tstar compare --data digits --model resnet10 --methods default,sqrt-m,ours-cn --seeds 5
    """
    from tstar.lab import data as data_sets
    from tstar.lab import methods as registry
    from tstar.lab.comparing import plan
    from tstar.lab.models import names as adjustable
    from tstar.lab.training import Config

    if methods.strip() == "list":
        typer.echo("\n".join(registry.list()))
        return
    require("pandas", "lab")  # missing parts are told before hours of training, not after
    names = methods.split(",")
    trainings = plan(names, seeds, baseline).trainings  # names are checked before data are read
    if features is None and model in adjustable():
        features = _FEATURES
    loaded = data_sets.load(data, root=data_root, size=size).subset(train_samples, test_samples)
    how: dict[str, Any] = {"lr": lr, "optimizer": optimizer, "batch_size": batch_size}
    how |= {"augment": augment, "val_fraction": val_fraction, "device": device, "epochs": epochs}
    asked = {"num_features": features, "baseline": baseline, "config": Config(**how)}
    found, stopped = _train(trainings * epochs, loaded, model, names, seeds=seeds, **asked)
    paths = found.save(output, _about(loaded)) if found.runs else []
    if as_json:
        rows, runs = ([*map(asdict, each)] for each in (found.rows(), found.runs))
        tell_json({"rows": rows, "runs": runs, "stopped": stopped})
    elif found.runs:
        table = found.table(f"{loaded.name}, {model}")
        typer.echo(replace(table, frame=table.frame.iloc[:, :7], note="").text())  # 80 characters
        tell("\n".join(["", *found.verdicts(), f"saved: {', '.join(map(str, paths))}"]))
    if stopped:
        tell("stopped; the table holds what had finished.", console=ERRORS)
        raise typer.Exit(130)
    if not any(run.status == "done" for run in found.runs):
        raise TstarError(f"No run succeeded ({len(found.runs)} failed or diverged); see above why.")


def _train(total: int, *given: Any, **asked: Any) -> tuple[Comparison, bool]:
    """The comparison, with its progress on stderr; and whether it was interrupted."""
    from tstar.lab.comparing import Comparison, compare

    runs: list[Run] = []
    ended = count(1)
    with progress("starting") as update:

        def on_run(run: Run) -> None:
            runs.append(run)
            score = run.error or f"{100 * (run.test_accuracy or 0.0):.2f} %"
            tell(f"{run.method}, seed {run.seed}: {score}", console=ERRORS)

        def on_epoch(method: str, seed: int, epoch: int, epochs: int) -> None:
            update(next(ended), total, f"{method}, seed {seed}, epoch {epoch}/{epochs}")

        try:
            return compare(*given, on_run=on_run, on_epoch=on_epoch, **asked), False
        except KeyboardInterrupt:
            return Comparison(tuple(runs), asked["baseline"]), True


def _about(dataset: object) -> str:
    from tstar.lab.sweep.provenance import versions

    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"`{shlex.join(['tstar', *sys.argv[1:]])}`\n\n{dataset!r}. {used}."
