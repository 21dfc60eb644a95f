"""Does an advice agree with what it is applied to: the model, the optimizer and its learning rate?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tstar.errors import TstarWarning
from tstar.formula.reading import FROM_INITIAL, highest_rate, optimizer_name
from tstar.formula.training import family
from tstar.surgery.finding import Head

# A schedule may pass its peak between two steps, so that the peak in the advice is a little below the one in the group.
_NEAR = 0.05


def warn_of_misfit(advice: Any, heads: Sequence[Head], optimizer: Any = None) -> None:
    """Warn where an advice is for another M, K or kind of optimizer; a number, and what it does not know, is for all."""
    pairs: list[tuple[str, Any, Any]] = []
    M, K = getattr(advice, "num_features", None), getattr(advice, "num_classes", None)
    if None not in (M, K) and (M, K) not in {(h.num_features, h.num_classes) for h in heads}:
        pairs += [("M", M, heads[0].num_features), ("K", K, heads[0].num_classes)]
    training = getattr(advice, "training", None)
    told, got = getattr(training, "family", None), _kind(optimizer)
    if told is not None and got is not None and family(got) not in (told, "other"):
        pairs.append(("optimizer", training.optimizer, got))  # type: ignore[union-attr]
    if pairs:
        wanted = ", ".join(f"{name} = {value}" for name, value, _ in pairs)
        found = ", ".join(f"{name} = {value}" for name, _, value in pairs)
        warnings.warn(
            f"The advice is for {wanted}, but it is applied to {found}, where another T may be right; call tstar.recommend "
            "for this model and this optimizer.",
            TstarWarning,
            stacklevel=3,
        )


def _kind(optimizer: Any) -> str | None:
    """The name that tells an optimizer's family: its own, of a class the first that is known."""
    if optimizer is None:
        return None
    if isinstance(optimizer, tuple):
        optimizer = optimizer[0]
    if isinstance(optimizer, str):
        return optimizer
    return optimizer_name(optimizer, lambda name: family(name) != "other")


def warn_of_rate(advice: Any, groups: Iterable[Mapping[str, Any]], heads: Sequence[Head]) -> None:
    """Warn where an advice for a higher rate meets a rate, at its peak, that nobody has raised.

    Of the optimizer's groups those that train the heads count, as in the advice.
    """
    factor = getattr(advice, "lr_factor", 1.0)
    wanted = getattr(getattr(advice, "training", None), "lr", None)
    if factor == 1 or wanted is None:
        return
    own = {id(p) for head in heads for p in head.layer.parameters()}
    for group in groups:
        if not any(id(p) in own for p in group["params"]):
            continue
        rate = highest_rate(group)
        if getattr(advice.training, "schedule", None) in FROM_INITIAL:
            rate = group.get("initial_lr", rate)  # what was set since is lost at the next step
        if math.isclose(rate, wanted / factor, rel_tol=_NEAR):
            what = "the rate", ", in every group of the optimizer and before a scheduler is built"
            if "max_lr" in group:  # OneCycleLR sets the rate whatever the optimizer was given
                what = "the scheduler's max_lr", ""
            warnings.warn(
                f"The advice is for a learning rate of {wanted:g}, and T is too high for {rate:g}: multiply {what[0]} by "
                f"advice.lr_factor ({factor:g}){what[1]}.",
                TstarWarning,
                stacklevel=3,
            )
            return
