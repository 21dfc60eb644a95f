"""The package's one error type, its one warning type, and what both messages are built with.

Every message says three things: what must hold, what was got, and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import ModuleType

from tstar.lazy import imported


class TstarError(ValueError):
    """Input that tstar cannot work with; the message says what to do about it."""


class TstarWarning(UserWarning):
    """Something that works, and that a careful colleague would mention."""


_MOST = 60  # names that a message lists


def unknown(what: str, got: object, allowed: Iterable[str], listed: str = "") -> TstarError:
    """The error for a name that is not on a list, with the nearest names that are; ``listed``: what lists them all."""
    names = sorted(allowed)
    text = got if isinstance(got, str) else ""
    near = difflib.get_close_matches(text, names, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    elif len(names) <= _MOST:
        hint = f"known: {', '.join(names)}."
    else:
        few = difflib.get_close_matches(text, names, n=5, cutoff=0.0)
        more = f"… and {len(names) - len(few):,} more"
        hint = f"known: {', '.join(few)}, {more}{f' ({listed} lists them)' if listed else ''}."
    return TstarError(f"Unknown {what} {shown(got)}; {hint}")


def shown(value: object) -> str:
    """A value as a message shows it: never too long, whatever a user gave."""
    try:
        text = repr(value)
    except Exception:  # an int of more digits than Python prints, an object whose repr fails
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:80]}… ({len(text):,} characters)"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of tstar brings it."""
    try:
        return imported(module)
    except ImportError as error:
        raise TstarError(
            f"This needs the package {module.partition('.')[0]!r}, which could not be imported "
            f"({error}); install it with: pip install 'tstar[{extra}]'"
        ) from error
