"""The ``tstar`` program: its commands in the order of the two flows, and how it ends."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from typing import Any

import typer

from tstar.errors import TstarError
from tstar.lab.cli.terminal import ERRORS, tell

USE = "Use: from a model and data to a temperature"
RESEARCH = "Research: from runs to coefficients"

app = typer.Typer(
    name="tstar",
    help="Train classifiers at the softmax temperature that fits them, without a search.",
    epilog="Start with: tstar demo · Each command shows an example with --help.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    debug: bool = typer.Option(
        False, "--debug", help="Show the traceback of an error; works after any command, too."
    ),
) -> None:
    if version:
        from tstar._version import __version__

        typer.echo(f"tstar {__version__}")
        raise typer.Exit()


def _load_commands() -> None:
    """Import every file of commands, which registers its own, in the order of the two flows."""
    for name in ("use", "fold", "package", "sweep", "runs", "compare", "report"):
        importlib.import_module(f"tstar.lab.cli.{name}_commands")


def main() -> None:
    """Run the program. Usage errors and interrupts end as typer ends them, other errors in a line.

    ``--debug`` shows the traceback of an error, and Python's own warnings.
    """
    debug = "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        # The formula has Greek letters, which redirected output on Windows cannot write.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    with warnings.catch_warnings():
        if not debug:
            warnings.showwarning = _warn
        try:
            _load_commands()
            app(prog_name="tstar")
        except Exception as error:
            if debug:
                raise
            tell(f"error {_describe(error)}", console=ERRORS, first="bold red")
            sys.exit(1)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    tell(f"warning {' '.join(str(message).split())}", console=ERRORS, first="bold yellow")


def _describe(error: Exception) -> str:
    """What is wrong, and what to do about it."""
    if isinstance(error, TstarError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"This needs the package {package!r}; install it with: pip install 'tstar[all]'"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"{text}\ntstar did not expect this: add --debug for the traceback, and please report it."
    )
