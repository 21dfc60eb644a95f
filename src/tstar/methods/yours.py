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
        check_recipe(recipe, self.name)
        loss = recipe.loss

        def explained(*args: Any) -> Any:
            with own.explained(self.name):
                return loss(*args)

        recipe.loss = explained
        return recipe


def check_recipe(recipe: Any, name: str) -> None:
    """Refuse what is no recipe, or holds what cannot be trained with."""
    if not isinstance(recipe, Recipe):
        kind = type(recipe).__name__
        raise TstarError(f"{name} must return a tstar.methods.Recipe, got {kind}.")
    if not isinstance(recipe.model, nn.Module):
        kind = type(recipe.model).__name__  # type: ignore[unreachable]
        raise TstarError(f"The Recipe of {name} must have a torch.nn.Module as model, got {kind}.")
    for part in ("loss", "on_epoch", "on_batch", "finish", "report"):
        value = getattr(recipe, part)
        if not callable(value) and (value is not None or part == "loss"):
            raise TstarError(f"The Recipe of {name} must have a function as {part}, got {value!r}.")


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
