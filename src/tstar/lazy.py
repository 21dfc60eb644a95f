"""Names of a package that are loaded when they are first used, so that importing it stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy(package: str, homes: Mapping[str, str | None]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: name → the module below it that holds it, or ``None`` for a module of that name."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home is None:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{home}"), name)

    return load


def imported(module: str) -> ModuleType:
    """A module, imported on use. Python's generator stays as it was: rich, which others import too, draws on it."""
    if module in sys.modules:
        return sys.modules[module]
    import random

    state = random.getstate()
    try:
        return import_module(module)
    finally:
        random.setstate(state)
