"""A method of your own: a function ``f(model, facts, …) -> Recipe``, or a class with ``prepare``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from tstar import own
from tstar.errors import TstarError
from tstar.methods.common import Plain
from tstar.methods.interface import Facts, Method, Recipe


@dataclass(frozen=True)
class Yours(Plain):
    """A function that prepares the recipe; options are its keywords."""

    name: str
    function: Callable[..., Recipe]
    options: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        with own.explained(self.name):
            recipe = self.function(model, facts, **self.options)
        if not isinstance(recipe, Recipe):
            raise TstarError(
                f"{self.name} must return a tstar.methods.Recipe, got {type(recipe).__name__}."
            )
        return recipe


def make(reference: str, options: Mapping[str, Any]) -> Method:
    """The method that a reference names, with its options."""
    part = own.load(reference)
    if not inspect.isclass(part):
        return Yours(reference, part, options)
    with own.explained(reference):
        method: Any = part(**options)
    lacking = [n for n in ("name", "needs", "prepare") if not hasattr(method, n)]
    if lacking:
        raise TstarError(
            f"{reference} must have {', '.join(lacking)}, as tstar.methods.Method says; or write a "
            "function f(model, facts) that returns a Recipe."
        )
    made: Method = method
    return made
