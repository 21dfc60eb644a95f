"""``tstar calculator``: the formula as one HTML page. Imports neither torch nor NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tstar.cli.app import USE, app


@app.command(rich_help_panel=USE)
def calculator(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The HTML file to write.", dir_okay=False)
    ] = Path("tstar-calculator.html"),
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """A page to try the formula on: every variant and rule, the curve over M; works offline.

    Example: tstar calculator -o calculator.html --open
    """
    from tstar.calculator import write

    written = write(output)
    typer.echo(written)
    if show:
        import webbrowser

        if not webbrowser.open(written.resolve().as_uri()):
            typer.echo("No browser could be started here; open the file yourself.", err=True)
