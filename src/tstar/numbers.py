"""Numbers that a user gives, checked: one clear error, or a plain float or int. One check of each kind.

Pure Python: torch's and NumPy's numbers are recognized by what they offer.
"""

from __future__ import annotations

import math
import operator
from typing import SupportsFloat

from tstar.errors import TstarError, shown


def number(name: str, value: object) -> float:
    """A finite float, from anything that is a number and nothing that merely converts to one."""
    if not _is_number(value):
        raise TstarError(f"{name} must be a number, got {shown(value)}.")
    if tuple(getattr(value, "shape", ())):
        raise TstarError(f"{name} must be a single number, got {shown(value)}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError as error:
        raise TstarError(f"{name} must be finite, got {shown(value)}.") from error
    except Exception as error:  # what a number of someone else's raises may be anything
        raise TstarError(
            f"{name} must be a single number, got {shown(value)} ({error})."
        ) from error
    if not math.isfinite(number):
        raise TstarError(f"{name} must be finite, got {number}.")
    return number


def whole(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """An int of at least ``least``; a float that is whole counts as one."""
    found = number(name, value)
    count = _exact(value, found) if found.is_integer() else least - 1
    if count < least or (most is not None and count > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise TstarError(f"{name} must be a whole number {limits}, got {name}={shown(value)}.")
    return count


def _exact(value: object, rounded: float) -> int:
    """A whole number to its last digit, of which a float keeps the first sixteen."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, RuntimeError):  # a float, or a fraction
        return int(rounded)


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


def check_csg(value: object) -> float:
    """csg as a float, if it is one: finite, and at least 0 (perfectly separated classes)."""
    return positive("csg", value, zero=True)


def positive_csg(value: object) -> float:
    csg = check_csg(value)
    if csg == 0:
        raise TstarError(
            "csg > 0 must hold, but got csg=0 (perfectly separated classes), whose logarithm does not exist; "
            "leave csg out, so that the class count alone corrects the temperature."
        )
    return csg


def _is_number(value: object) -> bool:
    """Whether it is a real number of Python, NumPy or torch: no truth value, no text, nothing complex."""
    if isinstance(value, bool | str | bytes | bytearray | complex):
        return False
    kind = str(getattr(value, "dtype", ""))  # of NumPy and torch
    if kind and not any(word in kind for word in ("int", "float")):
        return False
    return isinstance(value, SupportsFloat)
