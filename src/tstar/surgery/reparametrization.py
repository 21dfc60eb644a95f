"""Training at temperature T without touching the forward pass: other init, learning rate and decay of the head."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, unknown
from tstar.numbers import positive
from tstar.surgery.agreeing import warn_of_misfit, warn_of_rate
from tstar.surgery.finding import Head, check_head, resolve_head, tempered_heads, unwrap
from tstar.surgery.head import TemperedHead
from tstar.surgery.preceding import preceding_norm
from tstar.surgery.speed import backbone_scale, known_backbone


@dataclass(frozen=True)
class Factors:
    """What the head's init, learning rate, weight decay and ε are multiplied by."""

    init: float
    lr: float
    weight_decay: float
    eps: float


def factors(temperature: float, optimizer: str = "sgd") -> Factors:
    r"""The head's hyper-parameters at which training without a division equals training at T.

    The tempered logits are z = (W·h + b)/T. With V = W/T and c = b/T they are z = V·h + c, a plain head, and
    ∂L/∂W = (∂L/∂V)/T. Each optimizer's step on W, divided by T, is then a step on V:

    ========================  =======  ======  ============  =====
    optimizer                 init     lr      weight decay  ε
    ========================  =======  ======  ============  =====
    SGD, (Nesterov) momentum  1/T      1/T²    T²            –
    AdamW (decoupled decay)   1/T      1/T     T             T
    Adam (decay as L2)        1/T      1/T     T²            T
    ========================  =======  ======  ============  =====

    SGD is linear in the gradient: V ← V − (η/T²)(∂L/∂V + λT²·V). Adam's ratio m/(sqrt(v) + ε) does not see the
    gradient's scale once ε has it too, so only the step's own 1/T remains.
    """
    T = positive("temperature", temperature)
    table = {
        "sgd": Factors(1 / T, 1 / T**2, T**2, 1.0),
        "adamw": Factors(1 / T, 1 / T, T, T),
        "adam": Factors(1 / T, 1 / T, T**2, T),
    }
    return _of(optimizer, table)


def backbone_factors(loudness: float, optimizer: str = "sgd") -> Factors:
    """The backbone's hyper-parameters at which training equals one whose gradient is ``loudness`` (c·T) times as large.

    SGD steps by lr·(c·T·g + λp) = (lr·c·T)·(g + λ/(c·T)·p). Adam's ratio does not see the scale: ε (and L2) take it.
    """
    by = 1 / positive("loudness", loudness)
    table = {
        "sgd": Factors(1.0, loudness, by, 1.0),
        "adamw": Factors(1.0, 1.0, 1.0, by),
        "adam": Factors(1.0, 1.0, by, by),
    }
    return _of(optimizer, table)


def _of(optimizer: str, table: Mapping[str, Factors]) -> Factors:
    if optimizer not in table:
        raise unknown("optimizer", optimizer, table)
    return table[optimizer]


def param_groups(
    model: nn.Module,
    temperature: SupportsFloat,
    lr: float,
    weight_decay: float = 0.0,
    optimizer: str = "sgd",
    *,
    eps: float = 1e-8,
    groups: Iterable[Mapping[str, Any]] | None = None,
    backbone: float | Literal["matched"] | None = None,
    rescale: bool | None = None,
    head: str | Head | None = None,
    example_input: Any = None,
) -> list[dict[str, Any]]:
    """The optimizer's groups with which ``model`` trains as if its logits were divided by T.

    The head's weight and bias are divided by T **in place**, once: a second call with the same T divides nothing,
    and a head whose norm has seen training already is refused until you say ``rescale=False`` (a resumed
    training) or ``rescale=True`` (a new head on a trained norm). The model's forward pass, its state dict and its
    logits at deployment are those of the plain architecture.

    Equal to rounding for every learning-rate schedule that multiplies (cosine to zero, steps, warm-up). Not for
    schedules that set a rate for all groups alike, nor with clipping by the global gradient norm, which sees
    other norms. It replaces the division only: T* presupposes a batch norm just before the output layer, so a
    model without one gives a warning.

    Args:
        model: a plain classifier, or one tempered with T = 1 (for the batch norm).
        temperature: T, or what :func:`tstar.recommend` returns; an advice to leave the model gives the plain groups.
        lr: the learning rate of the model, times the advice's ``lr_factor``; the head's is derived.
        weight_decay: likewise.
        optimizer: ``"sgd"`` (any momentum), ``"adamw"``, or ``"adam"`` (weight decay as L2).
        eps: ε of Adam and AdamW.
        groups: groups of your own (layer decay, no decay for norms, …), which are kept; each gives up its part of
            the head to a group beside it. ``lr``, ``weight_decay`` and ``eps`` are for groups that have none.
        backbone: as in :func:`tstar.temper`: a number, ``"matched"``, or ``None`` for as it is. With SGD it becomes the
            backbone's learning rate, lr·c·T; Adam's does not change.
        rescale: whether to divide the head by T; by default, if it was not done before.
        head: the output layer, found by :func:`tstar.find_head` by default.
        example_input: passed to :func:`tstar.find_head`; the batch on which ``backbone="matched"`` is measured.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
    >>> groups = param_groups(model, 4.0, lr=0.1, weight_decay=1e-4)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(4, 0.1, 0.0001), (2, 0.00625, 0.0016)]
    >>> optimizer = torch.optim.SGD(groups, momentum=0.9)
    """
    model = unwrap(model)
    T = positive("temperature", temperature)
    by = factors(T, optimizer)
    for path, tempered in tempered_heads(model).items():
        if float(tempered.temperature) != 1.0:
            raise TstarError(
                f"The logits are divided by T = {float(tempered.temperature):g} already, at {path!r}: temper with T = 1, or "
                "use plain groups."
            )
    if head is None:
        head = getattr(temperature, "head", None)
    found = resolve_head(model, head, example_input)
    check_head(model, found)
    if groups is None:
        groups = [{"params": [p for p in model.parameters() if p.requires_grad]}]
    given = [_listed(group) for group in groups]
    warn_of_misfit(temperature, [found], optimizer)
    warn_of_rate(temperature, [{"lr": lr, **group} for group in given], [found])
    if getattr(temperature, "leave", False):
        known_backbone(backbone)
        return [_derived(g, g["params"], None, optimizer, lr, weight_decay, eps) for g in given]
    parent = model.get_submodule(found.path.rpartition(".")[0]) if found.path else model
    inserted = parent.norm if isinstance(parent, TemperedHead) else None
    before = inserted
    if before is None and (preceding := preceding_norm(model, found, example_input)):
        before = preceding[1]
    if before is None:
        warnings.warn(
            f"T* presupposes a batch norm just before the output layer, and {found.path!r} has none that "
            "could be seen. The groups replace the division by T only; insert the norm with "
            "tstar.temper(model, 1.0), or expect another optimum.",
            TstarWarning,
            stacklevel=2,
        )
    c = backbone_scale(backbone, model, found, example_input, inserted)
    behind = None if c is None else backbone_factors(c * T, optimizer)
    _rescale(found, T, before, rescale)
    own = {id(p) for p in found.layer.parameters()}
    norm = set() if inserted is None else {id(p) for p in inserted.parameters()}
    derived: list[dict[str, Any]] = []
    for group in given:
        parts: dict[Factors | None, list[Tensor]] = {behind: [], None: [], by: []}
        for p in group["params"]:
            parts[by if id(p) in own else None if id(p) in norm else behind].append(p)
        for factor, params in parts.items():
            if params:
                derived.append(_derived(group, params, factor, optimizer, lr, weight_decay, eps))
    return derived


def _derived(
    group: Mapping[str, Any],
    params: list[Tensor],
    by: Factors | None,
    optimizer: str,
    lr: float,
    weight_decay: float,
    eps: float,
) -> dict[str, Any]:
    """A part of ``group`` with its learning rate, decay and ε multiplied."""
    by = by or Factors(1.0, 1.0, 1.0, 1.0)
    new = dict(group) | {
        "params": params,
        "lr": group.get("lr", lr) * by.lr,
        "weight_decay": group.get("weight_decay", weight_decay) * by.weight_decay,
    }
    if optimizer != "sgd":
        new["eps"] = group.get("eps", eps) * by.eps
    return new


def _listed(group: Mapping[str, Any]) -> dict[str, Any]:
    """A group with its tensors as a list; torch also takes them as named pairs, as one tensor, or from a generator."""
    params = group["params"] if isinstance(group, Mapping) and "params" in group else None
    if params is None:
        raise TstarError(
            "Each of groups must be a dict with 'params', as torch's optimizers take them."
        )
    listed = [params] if isinstance(params, Tensor) else list(params)
    return {**group, "params": [p[1] if isinstance(p, tuple) else p for p in listed]}


def _rescale(head: Head, T: float, norm: nn.Module | None, wanted: bool | None) -> None:
    """Divide the head by T, unless that was done, or would undo a training."""
    done = getattr(head.layer, "divided_by", None)
    seen = getattr(norm, "num_batches_tracked", None)
    if wanted is None and done not in (None, T):
        raise TstarError(
            f"The head was already divided by T = {done:g}, so it cannot be divided by T = {T:g} as well; build "
            "the model anew, or pass rescale=True."
        )
    if wanted is None and done is None and seen is not None and int(seen) > 0:
        raise TstarError(
            f"The norm before the head has seen {int(seen)} batches, so this may be a training that goes on, whose "
            "head must not be divided by T again. Pass rescale=False to go on with it, or rescale=True if the "
            "head is new."
        )
    if wanted or (wanted is None and done is None):
        with torch.no_grad():
            for parameter in head.layer.parameters():
                parameter.mul_(1 / T)
    head.layer.divided_by = T  # type: ignore[assignment]
