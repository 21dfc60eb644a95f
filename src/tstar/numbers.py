"""Numbers that a user gives, checked: one clear error, or a float.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from tstar.errors import TstarError


def number(name: str, value: object) -> float:
    """A finite float, from anything that is a number and nothing that merely converts to one."""
    if isinstance(value, bool | str | bytes) or not isinstance(value, SupportsFloat):
        raise TstarError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise TstarError(f"{name} must be a single number, got {value!r} ({error}).") from error
    if not math.isfinite(number):
        raise TstarError(f"{name} must be finite, got {name}={number}.")
    return number


def positive(name: str, value: object) -> float:
    count = number(name, value)
    if count <= 0:
        raise TstarError(f"{name} must be positive, got {count:g}.")
    return count


def whole(name: str, value: object, *, least: int) -> float:
    count = number(name, value)
    if count < least or not count.is_integer():
        raise TstarError(
            f"{name} must be a whole number of at least {least}, got {name}={value!r}."
        )
    return count


def check_csg(value: object) -> float:
    """csg as a float, if it is one: finite, and at least 0 (perfectly separated classes)."""
    csg = number("csg", value)
    if csg < 0:
        raise TstarError(f"csg >= 0 must hold, but got csg={csg}.")
    return csg


def positive_csg(value: object) -> float:
    csg = check_csg(value)
    if csg == 0:
        raise TstarError(
            "csg > 0 must hold, but got csg=0 (perfectly separated classes), whose logarithm does not exist; "
            "leave csg out, so that the class count alone corrects the temperature."
        )
    return csg
