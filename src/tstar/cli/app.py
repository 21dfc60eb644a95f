"""The ``tstar`` program: its commands in the order of the two flows, and how it ends."""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from tstar.cli.failures import Failure, describe, say
from tstar.cli.wording import asked, in_options

USE = "Use: from a model and data to a temperature"
RESEARCH = "Research: from runs to coefficients"

# A reader of `tstar --help` meets the commands as a user does; any other command comes after these.
_ORDER = (
    *("demo", "temperature", "calculator", "csg", "recommend", "check", "fold"),
    *("data", "models", "sweep", "runs", "compare", "fit", "report", "figure", "paper"),
)


class _Flows(TyperGroup):
    """Commands in the order of the flows, not of the files that they live in."""

    def list_commands(self, ctx: Any) -> list[str]:
        def place(name: str) -> int:
            return _ORDER.index(name) if name in _ORDER else len(_ORDER)

        return sorted(super().list_commands(ctx), key=place)


app = typer.Typer(
    name="tstar",
    cls=_Flows,
    help="Which softmax temperature should your classifier train at? Ask before you train.",
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
    """Import every module of this package whose name ends in ``_commands``: each registers its own."""
    package = importlib.import_module("tstar.cli")
    for module in sorted(name for _, name, _ in pkgutil.iter_modules(package.__path__)):
        if module.endswith("_commands"):
            importlib.import_module(f"tstar.cli.{module}")


def main() -> None:
    """Run the program. An error says what is wrong and what to do; ``--debug`` shows where it arose."""
    words, debug = _take_debug(sys.argv[1:])
    _speak_utf8()
    command: Any = None

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        """A warning as one line; where it arose is shown with ``--debug`` only."""
        text = " ".join(str(message).split())
        say(Failure(in_options(text, command), kind="warning"))

    if not debug:
        warnings.showwarning = warn
    try:
        _load_commands()
        program = typer.main.get_command(app)
        command = asked(program, words)
        code = program.main(args=words, prog_name="tstar", standalone_mode=False)
    except Exception as error:
        failure = describe(error, command)
        if debug and failure.traceable:
            raise
        _end(failure)
    except KeyboardInterrupt as error:
        _end(describe(error))
    sys.exit(code if isinstance(code, int) else 0)


def _speak_utf8() -> None:
    """The formula has Greek letters, which redirected output on Windows and the C locale cannot write.

    A file's name may hold bytes that no encoding can read: they are shown escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            known = "utf" in stream.encoding.lower()
            encoding = stream.encoding if known else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _end(failure: Failure) -> None:
    say(failure)
    sys.exit(failure.code)


def _take_debug(words: list[str]) -> tuple[list[str], bool]:
    """The words without ``--debug``, wherever it stands, and whether it was there."""
    cut = words.index("--") if "--" in words else len(words)
    kept = [word for word in words[:cut] if word != "--debug"]
    return kept + words[cut:], len(kept) < cut
