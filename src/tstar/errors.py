"""The package's one error type, its one warning type, and what both messages are built with.

Every message follows one grammar: what must hold, what was got, what to do.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType


class TstarError(ValueError):
    """Input that tstar cannot work with; the message says what to do about it."""


class TstarWarning(UserWarning):
    """Something that works, and that a careful colleague would mention."""


def unknown(what: str, got: object, allowed: Iterable[str]) -> TstarError:
    """The error for a name that is not on a list, with the nearest names that are."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(got), names, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(names)}."
    )
    return TstarError(f"Unknown {what} {got!r}; {hint}")


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of tstar brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TstarError(
            f"This needs the package {module.partition('.')[0]!r}, which could not be imported "
            f"({error}); install it with: pip install 'tstar[{extra}]'"
        ) from error
