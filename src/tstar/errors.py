"""The package's one error, its one warning, and what their messages are built with.

Every message says three things: what must hold, what was got, and what to do.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


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
            said = f": {error}"
        except Exception:
            said = ""
        raise TstarError(f"{what}: {type(error).__name__}{said}") from error
