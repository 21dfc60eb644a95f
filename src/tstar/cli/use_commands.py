"""``tstar temperature`` and ``tstar recommend``. The first imports neither torch nor NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tstar.cli.app import USE, app
from tstar.cli.options import DATA, AsJson, DataRoot, Features, Head, Model, Scenario, Tuned
from tstar.cli.printing import tell_json
from tstar.cli.wording import in_options


def _training(
    csg: Annotated[
        float | None, typer.Option(help="Difficulty of the data set, as measured by tstar csg.")
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="A formula of the paper (base, csg, cn, csgcn), or budget, the law of version 0.1; chosen for you by default."
        ),
    ] = None,
    coefficients: Annotated[
        Path | None, typer.Option(help="JSON file with coefficients of your own.")
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            help="Optimizer: sgd, adamw, lion, … With --lr and --steps, T is for your training."
        ),
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimizer steps of the whole training.")
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="Momentum of SGD; 0.9 by default.")] = None,
    epochs: Annotated[
        float | None,
        typer.Option(
            help="Epochs, in place of --steps; needs --batch-size, and --samples where no data are given."
        ),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Number of training samples.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Samples per step.")] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Weight decay of the optimizer.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Learning-rate schedule: cosine, linear, one-cycle or constant."),
    ] = None,
    label_smoothing: Annotated[float, typer.Option(help="Label smoothing of the loss.")] = 0.0,
    scenario: Scenario = None,
    tuned: Tuned = False,
) -> None:
    """The options that both commands share, in the keywords of ``tstar.temperature``."""


def _with_training(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of :func:`_training` in place of its ``**how``, and ``--json`` last."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(_training, eval_str=True).parameters.values()
    *named, as_json = [option for option in own if option.kind is not option.VAR_KEYWORD]
    command.__signature__ = inspect.Signature([*named, *shared, as_json])  # type: ignore[attr-defined]
    return command


@app.command(rich_help_panel=USE)
@_with_training
def temperature(
    ctx: typer.Context,
    features: Annotated[int, typer.Option(help="M, the width of the output layer's input.")],
    classes: Annotated[int | None, typer.Option(help="K, the number of classes.")] = None,
    as_json: AsJson = False,
    **how: Any,
) -> None:
    """The temperature to train at, what to be careful about, and its terms.

    Example: tstar temperature --features 512 --classes 10 --optimizer sgd --lr 0.1 --steps 500 --batch-size 64

    The paper's formula alone: tstar temperature --features 2048 --classes 8 --csg 3.85
    """
    from tstar.formula.equation import explain

    _show(explain(features, classes, **how), as_json, ctx)


@app.command(rich_help_panel=USE)
@_with_training
def recommend(
    ctx: typer.Context,
    model: Model,
    data: Annotated[str | None, typer.Option(help=DATA)] = None,
    classes: Annotated[
        int | None, typer.Option(help="K, the number of classes, where no data are given.")
    ] = None,
    features: Features = None,
    head: Head = None,
    loss: Annotated[
        str | None, typer.Option(help="Loss that you train with: cross_entropy, nll_loss, …")
    ] = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
    **how: Any,
) -> None:
    """What to do with a model before training it on a data set, with reasons and cautions.

    Example: tstar recommend --model timm/resnet50 --data path/to/images --optimizer sgd --lr 0.1 --steps 500 --batch-size 64
    """
    from tstar.advice import recommend as advise
    from tstar.errors import TstarError
    from tstar.models import build

    source = None
    if data is not None:
        from tstar.data.door import count_classes, open_data

        source = open_data(data, size=32, root=data_root)
        count = count_classes(source)
        if classes not in (None, count):
            raise TstarError(
                f"The data have {count} classes, got --classes {classes}; leave it out, or correct it."
            )
        classes = count
    if classes is None:
        raise TstarError("The number of classes must be known: pass --data PATH or --classes K.")
    network = build(model, classes, num_features=features)
    _show(advise(network, source, head=head, loss=loss, **how), as_json, ctx)


def _show(advice: Any, as_json: bool, ctx: typer.Context) -> None:
    if as_json:
        tell_json(advice.to_dict())
        return
    from tstar.formula.rendering import as_rich

    said = advice.describe()
    notices = tuple(replace(n, message=in_options(n.message, ctx.command)) for n in said.notices)
    Console().print(as_rich(replace(said, notices=notices)), highlight=False)
