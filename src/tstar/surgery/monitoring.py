"""Is the tempered head training? What the optimizer reaches is looked at in its first steps, and on request at any time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from tstar.errors import TstarError, TstarWarning
from tstar.formula.reading import unwrapped
from tstar.surgery.head import TemperedHead

# The heads whose first steps are awaited, each with the optimizers that have stepped since.
_awaiting: WeakKeyDictionary[TemperedHead, WeakSet[Any]] = WeakKeyDictionary()
_hooks: list[Any] = []


def expect_update(head: TemperedHead) -> None:
    """From now on, until the optimizers have stepped: warn if they do not reach the head's parameters."""
    _awaiting[head] = WeakSet()
    if not _hooks:
        _hooks.append(register_optimizer_step_post_hook(_after_step))


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    """All optimizers of a loop have stepped once when one of them steps again: what none of them holds is missed."""
    if torch.compiler.is_compiling():
        return
    idle = all(p.grad is None for group in optimizer.param_groups for p in group["params"])
    for head, stepped in list(_awaiting.items()):
        again = optimizer in stepped
        stepped.add(optimizer)
        if any(p.grad is not None for p in head.parameters()) and (idle or again):
            del _awaiting[head]
            head.stepped = True
            _warn_of_missed(head, stepped)
        elif head.training and not idle and _frozen_but_run(head):
            del _awaiting[head]
            warnings.warn(
                "The output layer was frozen after it was tempered, so that T has no effect on it, and an adapter saves "
                "neither it nor the norm's statistics. With PEFT, name it in modules_to_save or set the task type.",
                TstarWarning,
                stacklevel=2,
            )
    if not _awaiting:
        _hooks.pop().remove()


def _frozen_but_run(head: TemperedHead) -> bool:
    seen = getattr(head.norm, "num_batches_tracked", None)
    frozen = not any(p.requires_grad for p in head.layer.parameters())
    return frozen and isinstance(seen, Tensor) and not seen.is_meta and int(seen) > 0


def _warn_of_missed(head: TemperedHead, optimizers: Iterable[Any]) -> None:
    held = set[int]().union(*map(_held, optimizers))
    missed = [
        name
        for name, p in head.named_parameters()
        if p.requires_grad and p.grad is not None and id(p) not in held
    ]
    if missed:
        warnings.warn(
            f"The optimizer does not train the tempered head ({', '.join(missed)}); was it built before tempering? "
            "Build it after tstar.temper, or pass it: tstar.temper(model, T, optimizer=optimizer).",
            TstarWarning,
            stacklevel=4,
        )


def join_optimizer(optimizer: Any, head: TemperedHead) -> None:
    """Give the norm's parameters to the group that trains the head's bias (or its weight, where it has none)."""
    norm = [] if head.norm is None else list(head.norm.parameters())
    like = head.bias if head.bias is not None else head.weight
    group = next(g for g in optimizer.param_groups if any(p is like for p in g["params"]))
    group["params"].extend(norm)
    if "param_names" in group:  # torch keeps names where it was given named parameters
        weight = group["param_names"][next(i for i, p in enumerate(group["params"]) if p is like)]
        stem = weight.rpartition(".")[0]
        group["param_names"].extend(f"{stem}.norm.{n}" for n, _ in head.norm.named_parameters())  # type: ignore[union-attr]


def trains(optimizer: Any, parameters: list[Tensor]) -> bool:
    """Whether an optimizer holds all of these parameters."""
    return _held(optimizer).issuperset(map(id, parameters))


def _held(optimizer: Any) -> set[int]:
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def live_optimizer(given: Any) -> Any:
    """The torch optimizer inside a trainer's wrapper; none for a name or a number."""
    if given is None or isinstance(given, str | tuple):
        return None
    inner = unwrapped(given)  # accelerate's, Fabric's, SAM, Lookahead
    if not isinstance(inner, torch.optim.Optimizer):
        raise TstarError(f"optimizer must be a torch optimizer, got {type(given).__name__}.")
    return inner
