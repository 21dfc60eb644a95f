"""Checks of what a user gives: numbers, and files that are read.

Each check gives one clear error, or the plain value. Pure Python: numbers of torch and NumPy are
recognized by what they offer. No check of a model, of data or of a training belongs here.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
from typing import Any, SupportsFloat

from tstar.errors import TstarError, shown
from tstar.text import printable

LARGEST_FILE = 1_000_000  # bytes of a JSON file that is read


def number(name: str, value: object) -> float:
    """A finite float, from anything that is a number and nothing that merely converts to one."""
    try:
        kind = str(getattr(value, "dtype", "float"))
        refused = isinstance(value, bool) or tuple(getattr(value, "shape", ()))
        if refused or not isinstance(value, SupportsFloat) or not re.search("int|float", kind):
            raise TypeError(f"its type is {type(value).__name__}")
        found = float(value)
    except OverflowError:
        found = math.inf
    except Exception as error:  # somebody else's number may raise anything
        raise TstarError(f"{name} must be a number, got {shown(value)}: {error}.") from error
    if not math.isfinite(found):
        raise TstarError(f"{name} must be finite, got {shown(value)}.")
    return found


def whole(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """An int of at least ``least``; a float that is whole counts as one."""
    found = number(name, value)
    try:
        count = operator.index(value)  # type: ignore[arg-type]  # a float keeps 16 digits only
    except (TypeError, RuntimeError):  # a float, or a fraction
        count = int(found) if found.is_integer() else least - 1
    if count < least or (most is not None and count > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise TstarError(f"{name} must be a whole number {limits}, got {name}={shown(value)}.")
    return count


def positive(name: str, value: object, *, zero: bool = False, most: float | None = None) -> float:
    """A finite float above 0, or with ``zero`` of at least 0; and of at most ``most``."""
    found = number(name, value)
    if found < 0 or (found == 0 and not zero) or (most is not None and found > most):
        wanted = "at least 0" if zero else "positive"
        wanted += "" if most is None else f" and at most {most:g}"
        raise TstarError(f"{name} must be {wanted}, got {name}={shown(value)}.")
    return found


def share(name: str, value: object, *, zero: bool = True) -> float:
    """A float in [0, 1), or without ``zero`` in (0, 1)."""
    found = number(name, value)
    if not (0 < found < 1 or (found == 0 and zero)):
        raise TstarError(f"0 <{'=' * zero} {name} < 1 must hold, but got {name}={shown(value)}.")
    return found


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
