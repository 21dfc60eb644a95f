"""``tstar temperature``: the closed form at the prompt. Imports neither torch nor NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tstar.cli.app import USE, app


@app.command(rich_help_panel=USE)
def temperature(
    features: Annotated[int, typer.Option(help="M, the width of the output layer's input.")],
    classes: Annotated[int | None, typer.Option(help="K, the number of classes.")] = None,
    csg: Annotated[
        float | None, typer.Option(help="Cumulative spectral gradient of the data set.")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="base, csg, cn or csgcn; the richest by default.")
    ] = None,
    coefficients: Annotated[
        Path | None, typer.Option(help="JSON file of a fit of your own.")
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="The highest learning rate; with --optimizer and --steps T fits them."),
    ] = None,
    optimizer: Annotated[str | None, typer.Option(help="sgd, adam or adamw.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Optimiser steps of the whole training.")
    ] = None,
    momentum: Annotated[float, typer.Option(help="Of SGD.")] = 0.9,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The temperature to train at, with its terms.

    Example: tstar temperature --features 2048 --classes 8 --csg 3.85

    With what you train: tstar temperature --features 512 --classes 10 --optimizer adamw --lr 0.001 --steps 5000
    """
    from tstar.formula.equation import explain

    result = explain(
        features,
        classes,
        csg,
        variant=variant,
        coefficients=coefficients,
        lr=lr,
        optimizer=optimizer,
        steps=steps,
        momentum=momentum,
    )
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for term in result.terms:
        table.add_row(f"  {term.expression}", f"{term.value:+.4f}")
    console = Console()
    console.print(
        f"[bold]{'T*' if result.limit is None else 'T'} = {result.temperature:.4g}[/]   (coefficients: {result.coefficients.name})",
        highlight=False,
    )
    console.print(table)
    if result.clipped:
        console.print(
            f"  {result.unclipped:.4g} was clipped to the {result.clipped}, {result.bound:g}"
        )
    if result.limit is not None:
        console.print(f"  budget: {result.limit_text()}", highlight=False)
    for flag in result.flags:
        colour = "yellow" if flag.level == "validated" else "red"
        console.print(f"  [{colour}]{flag.level}[/]: {flag.message}", highlight=False)
