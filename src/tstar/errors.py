"""The package's one error, its one warning, what their messages are built with, and lazy imports.

Every message says three things: what must hold, what was got, and what to do.
"""

from __future__ import annotations

import difflib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class TstarError(ValueError):
    """Input that tstar cannot work with; the message says what to do about it."""


class TstarWarning(UserWarning):
    """Something that works, and that a careful colleague would mention."""


_MOST = 60  # names that a message lists


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


def lazy(package: str, homes: Mapping[str, str | None]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: each name with the module that holds it, loaded on use.

    ``None`` stands for a module of that name.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(f"{package}.{home or name}")
        return module if home is None else getattr(module, name)

    return load


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of tstar brings it.

    Some packages draw random numbers when they are imported; Python's generator is put back.
    """
    if module in sys.modules:
        return sys.modules[module]
    state = random.getstate()
    try:
        return import_module(module)
    except ImportError as error:
        raise TstarError(
            f"This needs the package {module.partition('.')[0]!r}, which could not be imported "
            f"({error}); install it with: pip install 'tstar[{extra}]'"
        ) from error
    finally:
        random.setstate(state)
