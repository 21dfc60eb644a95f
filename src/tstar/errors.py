"""The package's one error, its one warning, and the checks of numbers and files that raise it.

Every message says three things: what must hold, what was got, and what to do. Pure Python: numbers
of torch and NumPy are recognized by what they offer. No check of a model or of data belongs here.
"""

from __future__ import annotations

import difflib
import json
import math
import operator
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsFloat

from tstar.text import printable

LARGEST_FILE = 1_000_000  # bytes of a JSON file that is read


class TstarError(ValueError):
    """Input that tstar cannot work with; the message says what to do about it."""


class TstarWarning(UserWarning):
    """Something that works, and that a careful colleague would mention."""


_MOST = 60  # names that a message lists
_OURS = ("tstar.", "torch.", "contextlib")  # where no warning points to


def warn(text: str) -> None:
    """A warning at the user's own line: the first that is neither tstar's nor torch's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TstarWarning, stacklevel=level)


def unknown(what: str, got: object, allowed: Iterable[str], listed: str = "") -> TstarError:
    """The error for a name that is not on a list, with the nearest names that are.

    ``listed`` says what lists them all.
    """
    names = sorted(allowed)
    near = difflib.get_close_matches(got if isinstance(got, str) else "", names, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    elif len(names) <= _MOST:
        hint = f"known: {', '.join(names)}."
    else:
        hint = f"known: {', '.join(names[:5])} … and {len(names) - 5:,} more"
        hint += f" ({listed} lists them)." if listed else "."
    return TstarError(f"Unknown {what} {shown(got)}; {hint}")


def shown(value: object) -> str:
    """A value as a message shows it: never too long, whatever a user gave."""
    try:
        text = repr(value)
    except Exception:  # an int of more digits than Python prints, an object whose repr fails
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:80]}… ({len(text):,} characters)"


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """The one guard: an error of the user's own code becomes ours, raised from the original."""
    try:
        yield
    except (TstarError, Warning):
        raise
    except Exception as error:  # a model, a Dataset, a label: their code can raise anything
        try:
            reason = f": {error}"
        except Exception:
            reason = ""
        raise TstarError(f"{what}: {type(error).__name__}{reason}") from error


# -- what a user gives -----------------------------------------------------------------------------
def number(name: str, value: object) -> float:
    """A finite float, from anything that is a number and nothing that merely converts to one."""
    try:
        kind = str(getattr(value, "dtype", "float"))
        refused = isinstance(value, bool) or tuple(getattr(value, "shape", ()))
        if refused or not isinstance(value, SupportsFloat) or not re.search("int|float", kind):
            raise TypeError(f"its type is {type(value).__name__}")
        real = float(value)
    except OverflowError:
        real = math.inf
    except Exception as error:  # somebody else's number may raise anything
        raise TstarError(f"{name} must be a number, got {shown(value)}: {error}.") from error
    if not math.isfinite(real):
        raise TstarError(f"{name} must be finite, got {shown(value)}.")
    return real


def whole(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """An int of at least ``least``; a float that is whole counts as one."""
    real = number(name, value)
    try:
        count = operator.index(value)  # type: ignore[arg-type]  # a float keeps 16 digits only
    except (TypeError, RuntimeError):  # a float, or a fraction
        count = int(real) if real.is_integer() else least - 1
    if count < least or (most is not None and count > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise TstarError(f"{name} must be a whole number {limits}, got {name}={shown(value)}.")
    return count


def positive(name: str, value: object, *, zero: bool = False, most: float | None = None) -> float:
    """A finite float above 0, or with ``zero`` of at least 0; and of at most ``most``."""
    real = number(name, value)
    if real < 0 or (real == 0 and not zero) or (most is not None and real > most):
        wanted = "at least 0" if zero else "positive"
        wanted += "" if most is None else f" and at most {most:g}"
        raise TstarError(f"{name} must be {wanted}, got {name}={shown(value)}.")
    return real


def share(name: str, value: object, *, zero: bool = True) -> float:
    """A float in [0, 1), or without ``zero`` in (0, 1)."""
    real = number(name, value)
    if not (0 < real < 1 or (real == 0 and zero)):
        raise TstarError(f"0 <{'=' * zero} {name} < 1 must hold, but got {name}={shown(value)}.")
    return real


def positive_csg(value: object) -> float:
    """csg as a float that has a logarithm."""
    csg = positive("csg", value, zero=True)
    if csg == 0:
        raise TstarError(
            "csg > 0 must hold, but got csg=0 (perfectly separated classes), which has no "
            "logarithm; leave csg out, so that the class count alone corrects the temperature."
        )
    return csg


def read_json(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """One JSON object from a regular file of at most 1 MB: finite numbers, printable names.

    ``what`` says in an error what the file should hold.
    """
    try:
        name = repr(printable(os.fspath(path)))
    except TypeError as error:
        raise TstarError(f"The path of {what} must be a path, got {shown(path)}.") from error
    try:
        if os.path.getsize(path) > LARGEST_FILE or not os.path.isfile(path):
            raise ValueError(f"no regular file of at most {LARGEST_FILE:,} bytes")
        with open(path, "rb") as file:
            data = json.loads(file.read(LARGEST_FILE).decode("utf-8"))
    # ValueError: no text, no JSON, a number of 5,000 digits, a zero byte in the path.
    except (OSError, ValueError, RecursionError) as error:
        raise TstarError(f"{name} is not a JSON file of {what}: {printable(error)}.") from error
    if not isinstance(data, dict):
        raise TstarError(f"{name} must hold one JSON object, got {type(data).__name__}.")
    return {printable(key): _cleaned(item, name) for key, item in data.items()}


def _cleaned(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _cleaned(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, name) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        number(f"Every number in {name}", value)
    return value
