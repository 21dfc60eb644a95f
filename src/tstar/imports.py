"""Imports on use: names of a package that are loaded late, and optional dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from tstar.errors import TstarError


def lazy(package: str, homes: Mapping[str, str | None]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: each name with the module that holds it, loaded on use.

    ``None`` stands for a module of that name.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(f".{home or name}", package)
        return module if home is None else getattr(module, name)

    return load


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra of tstar brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise TstarError(
            f"This needs the package {module.partition('.')[0]!r}, which could not be imported "
            f"({error}); install it with: pip install 'tstar[{extra}]'"
        ) from error
