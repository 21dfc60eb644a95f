"""The optimizer's groups: T as init, rate and decay of the head; a norm that joins; a new rate.

Belongs here: the theorem that T is a reparametrization of the head, the groups that follow from it,
and whatever changes the groups of a live optimizer. Numbers come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, guarded, positive, unknown, warn
from tstar.head import TemperedHead
from tstar.output_layer import Head, check_head, resolve_head, tempered_heads, unwrap
from tstar.training import body_rate, group_rates, schedulers_in, unwrapped

# The rates that a group has, and those that a scheduler has for each group.
_RATES = ("lr", "initial_lr", "max_lr", "min_lr")
_REMEMBERED = ("base_lrs", "max_lrs", "base_values", "_last_lr")


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


@guarded("param_groups() failed in your model or groups")
def param_groups(
    model: nn.Module,
    temperature: float,
    lr: float,
    weight_decay: float = 0.0,
    optimizer: str = "sgd",
    *,
    rescale: bool,
    eps: float = 1e-8,
    groups: Iterable[Mapping[str, Any]] | None = None,
    head: str | Head | None = None,
    example_input: Any = None,
) -> list[dict[str, Any]]:
    """The optimizer's groups with which ``model`` trains as if its logits were divided by T.

    The forward pass, the state dict and the logits at deployment are those of the plain
    architecture. Equal to rounding for every learning-rate schedule that multiplies; not for one
    that sets the same rate for all groups, nor with clipping by the global gradient norm. The
    paper's T* presupposes a batch norm just before the output layer.

    Args:
        model: a plain classifier, or one tempered with T = 1 (for the batch norm).
        temperature: T.
        lr: the learning rate of the model; the head's is derived.
        weight_decay: likewise.
        optimizer: ``"sgd"`` (any momentum), ``"adamw"``, or ``"adam"`` (weight decay as L2).
        rescale: true for a new head, whose weight and bias are then divided by T **in place**;
            false to go on with a training whose head was divided before.
        eps: ε of Adam and AdamW.
        groups: groups of your own, which are kept; each gives up its part of the head to a group
            beside it. ``lr``, ``weight_decay`` and ``eps`` are for groups that have none.
        head: as in :func:`tstar.temper`.
        example_input: as in :func:`tstar.temper`.

    >>> model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
    >>> groups = param_groups(model, 4.0, lr=0.1, weight_decay=1e-4, rescale=True)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(4, 0.1, 0.0001), (2, 0.00625, 0.0016)]
    """
    model = unwrap(model)
    T = positive("temperature", temperature)
    by = factors(T, optimizer)
    if groups is None:
        groups = [{"params": [p for p in model.parameters() if p.requires_grad]}]
    defaults = {"lr": lr, "weight_decay": weight_decay}
    if optimizer != "sgd":
        defaults["eps"] = eps
    given = [{**defaults, **group, "params": _tensors(group)} for group in groups]
    record = resolve_head(model, head, example_input)
    check_head(model, record)
    for path, tempered in tempered_heads(model).items():
        if float(tempered.temperature) != 1.0:
            raise TstarError(
                f"The logits are divided by T = {float(tempered.temperature):g} already, at "
                f"{path!r}: temper with T = 1, or use plain groups."
            )
    own = {id(p) for p in record.layer.parameters()}
    derived: list[dict[str, Any]] = []
    for group in given:
        rest = [p for p in group["params"] if id(p) not in own]
        mine = [p for p in group["params"] if id(p) in own]
        scaled = {name: group[name] * by[name] for name in defaults}
        both = {**group, "params": rest}, {**group, **scaled, "params": mine}
        derived += [part for part in both if part["params"]]
    if rescale:
        with torch.no_grad():
            for parameter in record.layer.parameters():
                parameter.mul_(1 / T)
    return derived


def _tensors(group: Mapping[str, Any]) -> list[Tensor]:
    """A group's tensors; torch also takes named pairs, one tensor, a generator."""
    params = group["params"]
    listed = [params] if isinstance(params, Tensor) else list(params)
    return [p[1] if isinstance(p, tuple) else p for p in listed]


# -- a live optimizer ------------------------------------------------------------------------------
def live_optimizer(given: Any, layers: Sequence[nn.Module]) -> Any:
    """The torch optimizer, which must hold the parameters of these output layers."""
    live = unwrapped(given)
    if not isinstance(live, torch.optim.Optimizer):
        raise TstarError(f"optimizer must be a torch optimizer, got {type(given).__name__}.")
    held = {id(p) for group in live.param_groups for p in group["params"]}
    if not held.issuperset(id(p) for layer in layers for p in layer.parameters()):
        raise TstarError(
            "The optimizer must hold the parameters of the model's output layer, got one that does "
            "not; build it from model.parameters() after tstar.temper, and leave optimizer= out."
        )
    return live


def join_optimizer(optimizer: Any, head: TemperedHead) -> None:
    """Give the norm's parameters to the group that trains the head's bias.

    Without a bias: to one of norms and biases at the rate of the head's weight, or to the weight's.
    """
    norm = {} if head.norm is None else dict(head.norm.named_parameters())
    groups, rates = optimizer.param_groups, group_rates(optimizer)
    like = head.bias if head.bias is not None else head.weight
    at = next(i for i, g in enumerate(groups) if any(p is like for p in g["params"]))
    for i, group in enumerate(groups) if head.bias is None else ():
        if rates[i] == rates[at] and all(p.ndim < 2 for p in group["params"]):
            at = i
    if "param_names" in groups[at]:  # torch keeps names if it was given named parameters
        pairs = [zip(g["params"], g["param_names"], strict=True) for g in groups]
        stem = next(n for pair in pairs for p, n in pair if p is like).rpartition(".")[0]
        groups[at]["param_names"].extend(f"{stem}.norm.{name}" for name in norm)
    groups[at]["params"].extend(norm.values())


def set_rate(optimizer: Any, layers: Sequence[nn.Module], lr: float, scheduler: Any = None) -> None:
    """Bring the training to this rate, wherever a group or a scheduler remembers the old one.

    Every group keeps its ratio to the others.
    """
    optimizer, parts = unwrapped(optimizer), schedulers_in(scheduler)
    before = body_rate(optimizer, nn.ModuleList(layers), scheduler)
    if not before:
        raise TstarError(
            f"The optimizer must have a learning rate to set, and {type(optimizer).__name__} has "
            "none; set lr in it first."
        )
    groups = optimizer.param_groups
    if not parts and any("initial_lr" in group for group in groups) and lr != before:
        warn(
            "The optimizer has a scheduler already, which remembers the old rate: pass it too, "
            "advice.apply(model, optimizer, scheduler)."
        )

    def scaled(rate: Any) -> Any:
        return rate / before * lr  # exactly lr for the rate of the training

    for group in groups:
        known = (name for name in _RATES if group.get(name) is not None)
        group.update({name: scaled(group[name]) for name in known})
    for part in parts:
        for name in _REMEMBERED:
            if isinstance(rates := getattr(part, name, None), list):
                setattr(part, name, [*map(scaled, rates)])  # two parts can share a list
        if getattr(part, "warmup_t", 0):  # timm's
            start, steps = part.warmup_lr_init, part.warmup_t
            part.warmup_steps = [(rate - start) / steps for rate in part.base_values]
