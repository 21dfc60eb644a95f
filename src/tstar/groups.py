"""The optimizer's groups: T as init, rate and decay of the head; and the rates of an advice.

Belongs here: the theorem that T is a reparametrization of the head, the groups that follow from it,
and whatever changes the groups of a live optimizer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsFloat

import torch
from torch import Tensor, nn

from tstar.advice import Recommendation
from tstar.checks import positive
from tstar.errors import TstarError, guarded, unknown
from tstar.facts import preceding_norm
from tstar.head import warn
from tstar.monitor import trust_rate, warn_of_misfit
from tstar.output_layer import Head, check_head, resolve_head, tempered_heads, unwrap
from tstar.training import groups_of, highest_rate, unwrapped

# The rates that a group has, those that a scheduler has for each group, and what else it has.
_RATES = ("lr", "initial_lr", "max_lr", "min_lr")
_REMEMBERED = ("base_lrs", "max_lrs", "base_values", "_last_lr")
_PER_GROUP = ("lr_lambdas", "min_lrs", "base_momentums", "max_momentums", "warmup_steps")


def factors(temperature: float, optimizer: str = "sgd") -> dict[str, float]:
    r"""The head's hyper-parameters at which training without a division equals training at T.

    The tempered logits are z = (W·h + b)/T. With V = W/T and c = b/T they are z = V·h + c, a plain
    head, and ∂L/∂W = (∂L/∂V)/T. Each optimizer's step on W, divided by T, is then a step on V:

    ========================  =======  ======  ============  =====
    optimizer                 init     lr      weight decay  ε
    ========================  =======  ======  ============  =====
    SGD, (Nesterov) momentum  1/T      1/T²    T²            –
    AdamW (decoupled decay)   1/T      1/T     T             T
    Adam (decay as L2)        1/T      1/T     T²            T
    ========================  =======  ======  ============  =====

    SGD is linear in the gradient: V ← V − (η/T²)(∂L/∂V + λT²·V). Adam's ratio m/(sqrt(v) + ε) does
    not see the gradient's scale once ε has it too, so only the step's own 1/T remains.
    """
    T = positive("temperature", temperature)
    table = {
        "sgd": {"init": 1 / T, "lr": 1 / T**2, "weight_decay": T**2, "eps": 1.0},
        "adamw": {"init": 1 / T, "lr": 1 / T, "weight_decay": T, "eps": T},
        "adam": {"init": 1 / T, "lr": 1 / T, "weight_decay": T**2, "eps": T},
    }
    if optimizer not in table:
        raise unknown("optimizer", optimizer, table)
    return table[optimizer]


@guarded("tstar.param_groups stopped in what you passed")
def param_groups(
    model: nn.Module,
    temperature: SupportsFloat | Recommendation,
    lr: float,
    weight_decay: float = 0.0,
    optimizer: str = "sgd",
    *,
    eps: float = 1e-8,
    groups: Iterable[Mapping[str, Any]] | None = None,
    rescale: bool | None = None,
    head: str | Head | None = None,
    example_input: Any = None,
) -> list[dict[str, Any]]:
    """The optimizer's groups with which ``model`` trains as if its logits were divided by T.

    The head's weight and bias are divided by T **in place**, once. The forward pass, the state dict
    and the logits at deployment are those of the plain architecture. Equal to rounding for every
    learning-rate schedule that multiplies; not for one that sets the same rate for all groups, nor
    with clipping by the global gradient norm.

    Args:
        model: a plain classifier, or one tempered with T = 1 (for the batch norm).
        temperature: T, or an advice of :func:`tstar.recommend`; without surgery in it, the groups
            are plain.
        lr: the learning rate of the model (``advice.lr``); the head's is derived.
        weight_decay: likewise.
        optimizer: ``"sgd"`` (any momentum), ``"adamw"``, or ``"adam"`` (weight decay as L2).
        eps: ε of Adam and AdamW.
        groups: groups of your own, which are kept; each gives up its part of the head to a group
            beside it. ``lr``, ``weight_decay`` and ``eps`` are for groups that have none.
        rescale: whether to divide the head by T; by default, if it was not done before.
        head: as in :func:`tstar.temper`.
        example_input: as in :func:`tstar.temper`.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
    >>> groups = param_groups(model, 4.0, lr=0.1, weight_decay=1e-4)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(4, 0.1, 0.0001), (2, 0.00625, 0.0016)]
    """
    model = unwrap(model)
    T = positive("temperature", temperature)
    by = factors(T, optimizer)
    if groups is None:
        groups = [{"params": [p for p in model.parameters() if p.requires_grad]}]
    usual = {"lr": lr, "weight_decay": weight_decay}
    if optimizer != "sgd":
        usual["eps"] = eps
    given = [{**usual, **group, "params": _tensors(group)} for group in groups]
    told: Any = head
    if isinstance(temperature, Recommendation):
        if not temperature.surgery:
            return given
        told = temperature.head if head is None else head
    found = resolve_head(model, told, example_input)
    check_head(model, found)
    warn_of_misfit(temperature, [found])
    _rescale(found, T, _norm_before(model, found, example_input), rescale)
    own = {id(p) for p in found.layer.parameters()}
    derived: list[dict[str, Any]] = []
    for group in given:
        rest = [p for p in group["params"] if id(p) not in own]
        mine = [p for p in group["params"] if id(p) in own]
        scaled = {name: group[name] * by[name] for name in usual}
        both = {**group, "params": rest}, {**group, **scaled, "params": mine}
        derived += [part for part in both if part["params"]]
    return derived


def _tensors(group: Mapping[str, Any]) -> list[Tensor]:
    """A group's tensors; torch also takes named pairs, one tensor, a generator."""
    params = group["params"]
    listed = [params] if isinstance(params, Tensor) else list(params)
    return [p[1] if isinstance(p, tuple) else p for p in listed]


def _norm_before(model: nn.Module, head: Head, example_input: Any) -> nn.Module | None:
    """The batch norm just before the head: of a tempered head (at T = 1), or the model's own."""
    for path, tempered in tempered_heads(model).items():
        if float(tempered.temperature) != 1.0:
            raise TstarError(
                f"The logits are divided by T = {float(tempered.temperature):g} already, at "
                f"{path!r}: temper with T = 1, or use plain groups."
            )
        if tempered.layer is head.layer and tempered.norm is not None:
            return tempered.norm
    found = preceding_norm(model, head, example_input)
    if found is None:
        warn(
            f"T* presupposes a batch norm just before the output layer, and {head.path!r} has "
            "none. Insert it with tstar.temper(model, 1.0), or expect another optimum."
        )
    return None if found is None else found[1]


def _rescale(head: Head, T: float, norm: nn.Module | None, wanted: bool | None) -> None:
    """Divide the head by T, unless that was done, or would undo a training."""
    done, seen = getattr(head.layer, "divided_by", None), getattr(norm, "num_batches_tracked", None)
    if wanted is None and (done not in (None, T) or (done is None and seen and int(seen))):
        raise TstarError(
            "The head was divided by another T, or the norm before it has seen batches. Pass "
            "rescale=False to go on with a training whose head was divided by T, or rescale=True "
            "if the head is new."
        )
    if wanted or (wanted is None and done is None):
        with torch.no_grad():
            for parameter in head.layer.parameters():
                parameter.mul_(1 / T)
    head.layer.divided_by = T  # type: ignore[assignment]


@guarded("advice.apply stopped in what you passed")
def set_rates(advice: Any, model: nn.Module, optimizer: Any, scheduler: Any = None) -> None:
    """Bring the output layer's group to the advised rate and decay; the others keep their ratio."""
    optimizer, parts = unwrapped(optimizer), list(_parts(scheduler))
    groups = optimizer.param_groups
    heads = [unwrap(model).get_submodule(head.path) for head in advice.heads]
    layers = nn.ModuleList(heads)
    trained = groups_of(optimizer, layers)
    at = (trained or groups_of(optimizer))[0]
    if advice.head_lr is not None and math.isclose(highest_rate(groups[at]), advice.head_lr):
        return  # done before
    peaks = [part.max_lrs[at] for part in parts if hasattr(part, "max_lrs")]  # of CyclicLR
    factor = advice.lr / max(highest_rate(groups[at]), *peaks, 0.0)
    if not parts and any("initial_lr" in g for g in groups) and (factor != 1 or advice.head_lr):
        warn(
            "The optimizer has a scheduler already, which remembers the old rate: pass it too, "
            "advice.apply(model, optimizer, scheduler)."
        )
    for i in range(len(groups)):
        _scale_rate(groups, parts, i, factor)
    for head in heads if parts else ():  # the rates are right wherever they are remembered
        trust_rate(head)
    decay = groups[at].get("weight_decay")
    none = not any(group.get("weight_decay") for group in groups)
    told = advice.weight_decay is not None and (none or decay)  # none but for the head stays
    for group in groups if told else ():
        group["weight_decay"] = advice.weight_decay * (
            group["weight_decay"] / decay if decay else 1
        )
    if advice.head_lr is not None:
        own = {id(p) for p in layers.parameters()}
        for i in trained:
            mine = _own_group(optimizer, parts, i, own)
            _scale_rate(groups, parts, mine, advice.head_lr / advice.lr)


def _parts(scheduler: Any) -> Iterator[Any]:
    """A scheduler of torch, timm or transformers, with those that it is made of."""
    for one in scheduler if isinstance(scheduler, list | tuple) else [scheduler]:
        inner = getattr(one, "scheduler", one)  # accelerate's wrapper
        if inner is not None:
            yield inner
            yield from _parts(getattr(inner, "_schedulers", ()))


def _scale_rate(groups: Sequence[Any], parts: Sequence[Any], i: int, factor: float) -> None:
    """Multiply the rate of a group, wherever the group or a scheduler remembers it."""
    groups[i].update({n: groups[i][n] * factor for n in _RATES if groups[i].get(n) is not None})
    for part in parts:
        for name in _REMEMBERED:
            if isinstance(rates := getattr(part, name, None), list):
                scaled = [r * factor if j == i else r for j, r in enumerate(rates)]
                setattr(part, name, scaled)  # a new list: two parts can share one
        if getattr(part, "warmup_t", 0):  # timm's
            rise = (part.base_values[i] - part.warmup_lr_init) / part.warmup_t
            part.warmup_steps = [rise if j == i else r for j, r in enumerate(part.warmup_steps)]


def _own_group(optimizer: Any, parts: Sequence[Any], i: int, own: set[int]) -> int:
    """The index of a group that has the output layer's parameters of group ``i`` alone."""
    group = optimizer.param_groups[i]
    mine = [j for j, p in enumerate(group["params"]) if id(p) in own]
    if len(mine) == len(group["params"]):
        return i
    new = dict(group)
    for name in {"params", "param_names"} & {*group}:
        new[name] = [group[name][j] for j in mine]
        group[name] = [each for j, each in enumerate(group[name]) if j not in mine]
    optimizer.add_param_group(new)
    for part in parts:
        for name in (*_REMEMBERED, *_PER_GROUP):
            if isinstance(kept := getattr(part, name, None), list):
                setattr(part, name, [*kept, kept[i]])
    return len(optimizer.param_groups) - 1
