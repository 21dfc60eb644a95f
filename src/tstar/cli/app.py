"""The ``tstar`` program: its commands, and how errors are shown."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import typer
from rich.console import Console

from tstar.errors import TstarError

USE = "Use: from a model and data to a temperature"
RESEARCH = "Research: from runs to coefficients"

app = typer.Typer(
    name="tstar",
    help="Which softmax temperature should your classifier train at? Ask before you train.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
errors = Console(stderr=True)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    if version:
        from tstar._version import __version__

        typer.echo(f"tstar {__version__}")
        raise typer.Exit()


def _load_commands() -> None:
    """Import every module of this package whose name ends in ``_commands``: each registers its own."""
    package = importlib.import_module("tstar.cli")
    for module in sorted(name for _, name, _ in pkgutil.iter_modules(package.__path__)):
        if module.endswith("_commands"):
            importlib.import_module(f"tstar.cli.{module}")


def main() -> None:
    """Run the program. An error of the package is one line; ``--debug`` shows where it arose."""
    _load_commands()
    try:
        app()
    except TstarError as error:
        if "--debug" in sys.argv:
            raise
        errors.print(f"[bold red]error[/] {_escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
