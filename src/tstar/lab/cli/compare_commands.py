"""``tstar compare``: methods side by side, with a paired test."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tstar.errors import TstarError
from tstar.imports import require
from tstar.lab.cli import options
from tstar.lab.cli.app import RESEARCH, app
from tstar.lab.cli.options import about
from tstar.lab.cli.sweep_commands import sweep_studies
from tstar.lab.cli.terminal import tell
from tstar.lab.sweep.spec import Spec

_FIELDS = ("size", "samples", "epochs", "lr", "optimizer", "batch_size", "val_fraction")
_FEATURES = 64  # of a network of adjustable width: small, since there are many trainings


@app.command(rich_help_panel=RESEARCH)
@options.with_fields(Spec, *_FIELDS, epochs=10)
def compare(
    data: options.Data = "digits",
    model: options.Model = "resnet10",
    methods: Annotated[
        str, about("Comma-separated; 'list' prints all names.")
    ] = "default,sqrt-m,insert-ln,ours-cn",
    seeds: Annotated[int, about("Number of seeds.", min=1)] = 5,
    features: options.Features = None,
    augment: Annotated[bool, about("Random crops, flips, rotations, as suits the data.")] = True,
    baseline: Annotated[str, about("The method to compare with.")] = "default",
    store: Annotated[Path | None, about("The file of runs; by default in the output.")] = None,
    workers: Annotated[int | None, about("Runs at once; one per GPU or core.", min=1)] = None,
    data_root: options.DataRoot = None,
    device: options.Device = "auto",
    output: options.Output = Path("tstar-compare"),
    **training: Any,
) -> None:
    """Train several methods, paired by seed, and say which differences are more than noise.

    Runs that the store has are not trained again. A network of adjustable width has 64 features,
    unless --features says otherwise.

    Example: tstar compare --data digits --model resnet10 --methods default,sqrt-m,ours-cn --seeds 5
    """
    from tstar.lab import methods as registry
    from tstar.lab.comparing import comparison_study, view_study
    from tstar.lab.models import names as adjustable
    from tstar.lab.sweep.provenance import versions

    if methods.strip() == "list":
        typer.echo("\n".join(registry.list()))
        return
    require("pandas", "lab")  # missing parts are told before hours of training, not after
    if features is None and model in adjustable():
        features = _FEATURES
    root = None if data_root is None else str(data_root)
    asked = training | {"num_features": features, "augment": augment}
    how: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    how |= {"seeds": seeds, "baseline": baseline, "data_root": root}
    study = comparison_study(data, model, methods.split(","), **how)
    if store is None:
        output.mkdir(parents=True, exist_ok=True)
        store = output / "runs.db"
    sweep_studies([study], store, {"workers": workers, "device": device, "data_root": root})
    found = view_study(store, study, baseline)
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    paths = found.save(output, f"`{shlex.join(['tstar', *sys.argv[1:]])}`\n\n{used}.")
    table = found.table()
    typer.echo(replace(table, frame=table.frame.iloc[:, :7], note="").text())  # 80 characters
    tell("\n".join(["", *found.verdicts(), f"saved: {', '.join(map(str, (*paths, store)))}"]))
    if not (found.runs["status"] == "done").any():
        bad = len(found.runs)
        raise TstarError(f"No run succeeded ({bad} failed or diverged); see above why.")
