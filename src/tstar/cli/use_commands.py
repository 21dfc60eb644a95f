"""``tstar temperature`` and ``tstar recommend``. The first imports neither torch nor NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tstar.cli.app import USE, app

Csg = Annotated[float | None, typer.Option(help="Difficulty of the data set, as tstar csg says.")]
Variant = Annotated[
    str | None,
    typer.Option(help="Coefficients of the paper: base, csg, cn or csgcn. Default: by evidence."),
]
Coefficients = Annotated[Path | None, typer.Option(help="JSON file with coefficients of your own.")]
Optimizer = Annotated[
    str | None,
    typer.Option(help="Optimizer: sgd, adamw, lion, … With --lr and --steps, T fits it."),
]
Lr = Annotated[float | None, typer.Option(help="Highest learning rate.")]
Momentum = Annotated[float | None, typer.Option(help="Momentum of SGD; 0.9 by default.")]
Steps = Annotated[int | None, typer.Option(help="Optimizer steps of the whole training.")]
Epochs = Annotated[
    float | None, typer.Option(help="Epochs, in place of --steps; needs --samples, --batch-size.")
]
Samples = Annotated[int | None, typer.Option(help="Number of training samples.")]
BatchSize = Annotated[int | None, typer.Option(help="Samples per step.")]
WeightDecay = Annotated[float | None, typer.Option(help="Weight decay of the optimizer.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Learning-rate schedule: cosine, linear or constant.")
]
Smoothing = Annotated[float, typer.Option(help="Label smoothing of the loss.")]
Scenario = Annotated[str | None, typer.Option(help="scratch or finetune.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(rich_help_panel=USE)
def temperature(
    features: Annotated[int, typer.Option(help="M, the width of the output layer's input.")],
    classes: Annotated[int | None, typer.Option(help="K, the number of classes.")] = None,
    csg: Csg = None,
    variant: Variant = None,
    coefficients: Coefficients = None,
    optimizer: Optimizer = None,
    lr: Lr = None,
    steps: Steps = None,
    momentum: Momentum = None,
    epochs: Epochs = None,
    samples: Samples = None,
    batch_size: BatchSize = None,
    weight_decay: WeightDecay = None,
    scheduler: Scheduler = None,
    label_smoothing: Smoothing = 0.0,
    scenario: Scenario = None,
    as_json: Json = False,
) -> None:
    """The temperature to train at, what to be careful about, and its terms.

    Example: tstar temperature --features 512 --classes 10 --optimizer adamw --lr 0.001 --steps 5000

    The paper's formula alone: tstar temperature --features 2048 --classes 8 --csg 3.85
    """
    from tstar.formula.equation import explain

    result = explain(
        features,
        classes,
        csg,
        variant=variant,
        coefficients=coefficients,
        optimizer=optimizer,
        lr=lr,
        momentum=momentum,
        steps=steps,
        epochs=epochs,
        samples=samples,
        batch_size=batch_size,
        weight_decay=weight_decay,
        scheduler=scheduler,
        label_smoothing=label_smoothing,
        scenario=scenario,
    )
    _show(result, as_json)


@app.command(rich_help_panel=USE)
def recommend(
    model: Annotated[
        str, typer.Option(help="resnet10, torchvision/NAME, timm/NAME, transformers/NAME.")
    ],
    data: Annotated[
        str | None, typer.Option(help="Image folder, .npz file, or name of a data set.")
    ] = None,
    classes: Annotated[int | None, typer.Option(help="K, where no data are given.")] = None,
    features: Annotated[
        int | None, typer.Option(help="M, for a network of adjustable width.")
    ] = None,
    csg: Csg = None,
    variant: Variant = None,
    coefficients: Coefficients = None,
    optimizer: Optimizer = None,
    lr: Lr = None,
    steps: Steps = None,
    momentum: Momentum = None,
    epochs: Epochs = None,
    samples: Samples = None,
    batch_size: BatchSize = None,
    weight_decay: WeightDecay = None,
    scheduler: Scheduler = None,
    label_smoothing: Smoothing = 0.0,
    scenario: Scenario = None,
    as_json: Json = False,
) -> None:
    """What to do with a model before training it on a data set, with reasons and cautions.

    Example: tstar recommend --model timm/resnet50 --data path/to/images --optimizer sgd --lr 0.1 --steps 50000
    """
    from tstar.advice import recommend as advise
    from tstar.errors import TstarError
    from tstar.models import build

    if data is not None and (classes is None or csg is None):
        from tstar.difficulty import csg as measure

        difficulty = measure(data)
        if classes is not None and classes != difficulty.num_classes:
            raise TstarError(
                f"--classes must agree with the data, which have {difficulty.num_classes}, got {classes}."
            )
        classes = difficulty.num_classes
        csg = difficulty.value if csg is None else csg
    if classes is None:
        raise TstarError("The number of classes must be known: pass --data PATH or --classes K.")
    advice = advise(
        build(model, classes, num_features=features),
        csg=csg,
        variant=variant,
        coefficients=coefficients,
        optimizer=optimizer,
        lr=lr,
        momentum=momentum,
        steps=steps,
        epochs=epochs,
        samples=samples,
        batch_size=batch_size,
        weight_decay=weight_decay,
        scheduler=scheduler,
        label_smoothing=label_smoothing,
        scenario=scenario,
    )
    _show(advice, as_json)


def _show(advice: Any, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(advice.to_dict(), indent=2))
    else:
        Console().print(advice, highlight=False)
