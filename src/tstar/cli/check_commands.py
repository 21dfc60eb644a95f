"""``tstar check``: train briefly at several temperatures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tstar.cli.app import USE, app
from tstar.cli.options import (
    DATA,
    AsJson,
    DataRoot,
    Features,
    Head,
    Lr,
    Model,
    OldFigure,
    Scenario,
    Size,
    Tuned,
)
from tstar.cli.printing import tell, tell_json
from tstar.cli.progress import progress
from tstar.errors import TstarError


@app.command(rich_help_panel=USE)
def check(
    model: Model,
    data: Annotated[str, typer.Option(help=DATA)],
    features: Features = None,
    head: Head = None,
    temperatures: Annotated[
        str | None,
        typer.Option(help="Temperatures to try, comma-separated; around the advised T by default."),
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for the whole check.")] = 120.0,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings per temperature.")] = 2,
    lr: Lr = 0.1,
    optimizer: Annotated[
        str,
        typer.Option(
            help="Optimizer: sgd, adam, adamw, or your own (package.module:name or ./file.py:name)."
        ),
    ] = "sgd",
    scenario: Scenario = None,
    tuned: Tuned = False,
    size: Size = None,
    data_root: DataRoot = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Save a figure of accuracy against T (.png, .pdf, .svg)."
        ),
    ] = None,
    as_json: AsJson = False,
    figure: OldFigure = None,
) -> None:
    """Train briefly at several temperatures: where is the peak, and where does the formula point?

    Example: tstar check --model resnet10 --features 64 --data digits --budget 60
    """
    from tstar.checking.trial import check as run
    from tstar.data import load
    from tstar.models.fitting import fitting_model
    from tstar.report.style import format_of
    from tstar.training import Config

    figure = figure or output
    if figure is not None:
        format_of(figure)

    loaded = load(data, root=data_root, size=size)

    def make_model() -> Any:
        return fitting_model(model, loaded, features, None)  # check() seeds it

    grid = None if temperatures is None else _numbers(temperatures)
    with progress(Console(stderr=True)) as tell_progress:
        result = run(
            make_model,
            loaded,
            temperatures=grid,
            budget=budget,
            seeds=seeds,
            head=head,
            config=Config(lr=lr, optimizer=optimizer),
            scenario=scenario,
            tuned=tuned,
            progress=tell_progress,
        )
    if figure is not None:
        result.plot(figure)
    if as_json:
        tell_json(result.to_dict())
        return
    tell(result)
    if figure is not None:
        tell(f"Figure: {figure}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise TstarError(
            f"--temperatures must be numbers separated by commas, such as 1,4,16, got {text!r}."
        ) from None
