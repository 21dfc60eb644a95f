"""The optimizer's groups: T as init, rate and decay of the head; and the rates of an advice.

Belongs here: the theorem that T is a reparametrization of the head, the groups that follow from it,
and whatever changes the groups of a live optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat

import torch
from torch import Tensor, nn

from tstar.checks import positive
from tstar.errors import TstarError, guarded, unknown
from tstar.facts import preceding_norm
from tstar.head import warn
from tstar.monitor import warn_of_misfit
from tstar.output_layer import Head, check_head, resolve_head, tempered_heads, unwrap
from tstar.training import highest_rate, unwrapped

_RATES = ("lr", "initial_lr", "max_lr", "min_lr")


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
    temperature: SupportsFloat,
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
        temperature: T, or what :func:`tstar.recommend` returns; without surgery in the advice, the
            groups are plain.
        lr: the learning rate of the model (``advice.lr``); the head's is derived.
        weight_decay: likewise.
        optimizer: ``"sgd"`` (any momentum), ``"adamw"``, or ``"adam"`` (weight decay as L2).
        eps: ε of Adam and AdamW.
        groups: groups of your own, which are kept; each gives up its part of the head to a group
            beside it. ``lr``, ``weight_decay`` and ``eps`` are for groups that have none.
        rescale: whether to divide the head by T; by default, if it was not done before.
        head: as in :func:`tstar.temper`.
        example_input: as in :func:`tstar.temper`.

    Returns:
        Groups for a torch optimizer.

    Raises:
        TstarError: the model is tempered at another T already, or was divided before.

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
    if not getattr(temperature, "surgery", True):
        return given
    told = getattr(temperature, "head", None) if head is None else head
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


def set_rates(advice: Any, model: nn.Module, optimizer: Any, scheduler: Any = None) -> None:
    """Bring the output layer's group to the advised rate and decay; the others keep their ratio."""
    optimizer = unwrapped(optimizer)
    groups = optimizer.param_groups
    paths = [head.path for head in advice.heads]
    own = {id(p) for path in paths for p in model.get_submodule(path).parameters()}
    mine = [group for group in groups if any(id(p) in own for p in group["params"])]
    first = max(mine or groups, key=highest_rate)
    if advice.lr is not None:
        factor = advice.lr / highest_rate(first)
        _scale(groups, _RATES, factor)
        _scale_scheduler(scheduler, factor)
    if advice.weight_decay is not None and first.get("weight_decay"):
        _scale(groups, ("weight_decay",), advice.weight_decay / first["weight_decay"])
    if advice.head_lr is not None and advice.lr is not None:
        if scheduler is not None:
            raise TstarError(
                "The output layer's own rate needs a group of its own; call advice.apply before "
                "the scheduler is built, and leave scheduler out."
            )
        for group in mine:
            _scale([_split(optimizer, group, own)], _RATES, advice.head_lr / advice.lr)


def _scale(groups: Iterable[dict[str, Any]], names: Sequence[str], factor: float) -> None:
    for group in groups:
        group.update({n: group[n] * factor for n in names if group.get(n) is not None})


def _scale_scheduler(scheduler: Any, factor: float) -> None:
    """The rates that a scheduler of torch, timm or transformers remembers."""
    inner = getattr(scheduler, "scheduler", scheduler)  # accelerate's wrapper
    for name in ("base_lrs", "max_lrs", "base_values", "_last_lr"):
        rates = getattr(inner, name, None)
        if isinstance(rates, list):
            setattr(inner, name, [rate * factor for rate in rates])
    for part in getattr(inner, "_schedulers", ()):  # SequentialLR, ChainedScheduler
        _scale_scheduler(part, factor)


def _split(optimizer: Any, group: dict[str, Any], own: set[int]) -> dict[str, Any]:
    """A group of the output layer's parameters alone."""
    rest = [p for p in group["params"] if id(p) not in own]
    if not rest:
        return group
    mine = {**group, "params": [p for p in group["params"] if id(p) in own]}
    group["params"] = rest
    optimizer.add_param_group(mine)
    return mine
