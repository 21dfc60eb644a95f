"""What a failed command says: what is wrong, what to do about it, and its exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from tstar.cli.printing import tell
from tstar.cli.wording import in_options
from tstar.errors import TstarError

_STOPPED = 130  # as shells report an interrupt
_USAGE = 2
# Packages whose import name is not the name they are installed by.
_INSTALLED_AS = {"sklearn": "scikit-learn", "PIL": "pillow"}


@dataclass(frozen=True)
class Failure:
    """The end of a command.

    Attributes:
        message: what is wrong; empty where nothing needs saying.
        hint: what to do about it, where the message does not say so itself.
        code: the program's exit code.
        kind: the word that the line starts with.
        traceable: whether a traceback would tell more.
    """

    message: str
    hint: str = ""
    code: int = 1
    kind: str = "error"
    traceable: bool = True


def describe(error: BaseException, command: Any = None) -> Failure:
    """Which failure an exception amounts to; the library's own is told in the options of the command."""
    if isinstance(error, TstarError):
        return Failure(in_options(str(error), command))
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return Failure("", code=_STOPPED, traceable=False)
    if hasattr(error, "format_message"):  # click's, which newer typers carry inside themselves
        return _usage(error)
    if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
        return Failure("", code=0, traceable=False)
    if isinstance(error, ImportError):
        return _missing(error)
    if isinstance(error, OSError):
        return _file(error)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return Failure("Out of memory.", "try smaller batches, fewer workers, or less data")
    text = " ".join(str(error).split())
    return Failure(
        f"{type(error).__name__}: {text}" if text else type(error).__name__,
        "this was not expected: add --debug for the traceback, and please report it",
    )


def say(failure: Failure) -> None:
    """Print a failure to the standard error."""
    if not failure.message:
        return
    console = Console(stderr=True)
    color = "yellow" if failure.kind == "warning" else "red"
    tell(f"{failure.kind} {failure.message}", console=console, first=f"bold {color}")
    if failure.hint:
        tell(f"hint {failure.hint}", console=console, first="dim")


def _usage(error: BaseException) -> Failure:
    """A word of the command line that was not understood."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tstar"
    code = int(getattr(error, "exit_code", _USAGE))
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")  # type: ignore[attr-defined]
        return Failure("", code=code, traceable=False)
    text = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    return Failure(text, f"{command} --help", code=code, traceable=False)


def _file(error: OSError) -> Failure:
    what = error.strerror or str(error) or type(error).__name__
    where = "" if error.filename is None else f": {error.filename}"
    hints = {
        FileNotFoundError: "check the path",
        PermissionError: "check who may read or write there, or choose another place",
        IsADirectoryError: "name a file, not a folder",
        NotADirectoryError: "name a folder, not a file",
    }
    hint = next((text for kind, text in hints.items() if isinstance(error, kind)), "")
    return Failure(f"{what}{where}", hint or "add --debug to see where it arose")


def _missing(error: ImportError) -> Failure:
    """A package that is not installed, and the extra of tstar that brings it."""
    module = (error.name or "").partition(".")[0]
    if not module or module == "tstar":
        return Failure(f"{type(error).__name__}: {error}", "add --debug for the traceback")
    package = _INSTALLED_AS.get(module, module)
    extras = _extras_with(package)
    what = f"'tstar[{extras[0]}]'" if extras else package
    return Failure(
        f"This needs the package {package!r}, which is not installed.", f"pip install {what}"
    )


def _extras_with(package: str) -> list[str]:
    """The extras that bring a package, the smallest first, as the installed metadata has them."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("tstar") or []
    except PackageNotFoundError:  # run from a source tree
        return []
    brought: dict[str, set[str]] = {}
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name and extra:
            brought.setdefault(extra[1], set()).add(name[0].lower().replace("_", "-"))
    having = [extra for extra, names in brought.items() if package.lower() in names]
    return sorted(having, key=lambda extra: (len(brought[extra]), extra))
