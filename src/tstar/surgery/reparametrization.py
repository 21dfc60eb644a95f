"""Training at temperature T without touching the forward pass: other init, learning rate and decay of the head."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, unknown
from tstar.numbers import positive
from tstar.surgery.example_inputs import standard_inputs
from tstar.surgery.finding import Head, check_head, resolve_head, tempered_heads, unwrap
from tstar.surgery.head import TemperedHead
from tstar.surgery.probing import call, undisturbed


@dataclass(frozen=True)
class Factors:
    """By which the head's init, learning rate, weight decay and ε are multiplied."""

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
    T = positive("The temperature", temperature)
    table = {
        "sgd": Factors(1 / T, 1 / T**2, T**2, 1.0),
        "adamw": Factors(1 / T, 1 / T, T, T),
        "adam": Factors(1 / T, 1 / T, T**2, T),
    }
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
    head: str | Head | None = None,
    example_input: Any = None,
) -> list[dict[str, Any]]:
    """The optimizer's groups with which ``model`` trains as if its logits were divided by T.

    The head's weight and bias are divided by T **in place**, so call it once, before training. The model's
    forward pass, its state dict and its logits at deployment are those of the plain architecture.

    Equal to rounding for every learning-rate schedule that multiplies (cosine to zero, steps, warm-up). Not for
    schedules that set a rate for all groups alike, nor with clipping by the global gradient norm, which sees
    other norms. It replaces the division only: T* presupposes a batch norm just before the output layer, so a
    model without one gives a warning.

    Args:
        model: a plain classifier, or one tempered with T = 1 (for the batch norm).
        temperature: T, or what :func:`tstar.recommend` returns.
        lr: the learning rate of the model; the head's is derived.
        weight_decay: likewise.
        optimizer: ``"sgd"`` (any momentum), ``"adamw"``, or ``"adam"`` (weight decay as L2).
        eps: ε of Adam and AdamW.
        head: the output layer, found by :func:`tstar.find_head` by default.
        example_input: passed to :func:`tstar.find_head`.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
    >>> groups = param_groups(model, 4.0, lr=0.1, weight_decay=1e-4)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(4, 0.1, 0.0001), (2, 0.00625, 0.0016)]
    >>> optimizer = torch.optim.SGD(groups, momentum=0.9)
    """
    model = unwrap(model)
    T = positive("The temperature", temperature)
    by = factors(T, optimizer)
    for path, tempered in tempered_heads(model).items():
        if float(tempered.temperature) != 1.0:
            raise TstarError(
                f"The logits must not be divided by T already, got a tempered head at {path!r} with "
                f"T = {float(tempered.temperature):g}: temper with T = 1, or use plain groups."
            )
    if head is None:
        head = getattr(temperature, "head", None)
    found = resolve_head(model, head, example_input)
    check_head(model, found)
    if not _normalized(model, found, example_input):
        warnings.warn(
            f"T* presupposes a batch norm just before the output layer, and {found.path!r} has none that "
            "could be seen. The groups replace the division by T only; insert the norm with "
            "tstar.temper(model, 1.0), or expect another optimum.",
            TstarWarning,
            stacklevel=2,
        )
    own = list(found.layer.parameters())
    with torch.no_grad():
        for parameter in own:
            parameter.mul_(by.init)
    mine = {id(parameter) for parameter in own}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in mine]
    common: dict[str, Any] = {"params": rest, "lr": lr, "weight_decay": weight_decay}
    tuned: dict[str, Any] = {
        "params": [parameter for parameter in own if parameter.requires_grad],
        "lr": lr * by.lr,
        "weight_decay": weight_decay * by.weight_decay,
    }
    if optimizer != "sgd":
        common["eps"], tuned["eps"] = eps, eps * by.eps
    return [common, tuned] if rest else [tuned]


def _normalized(model: nn.Module, head: Head, example_input: Any) -> bool:
    """Whether the head's input is a batch norm's output, unchanged but for its shape (and dropout)."""
    parent = model.get_submodule(head.path.rpartition(".")[0]) if head.path else model
    if isinstance(parent, TemperedHead):
        return isinstance(parent.norm, nn.modules.batchnorm._BatchNorm)
    examples = [example_input] if example_input is not None else standard_inputs(model)
    for example in examples:
        normed: list[Tensor] = []  # kept alive, so that no memory is used twice
        at_head: list[bool] = []
        hooks = [
            module.register_forward_hook(_keep(normed))
            for module in model.modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)
        ]
        hooks.append(head.layer.register_forward_pre_hook(_compare(normed, at_head)))
        try:
            with undisturbed(model), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(model, example)
        except Exception:  # not an input that this model takes; try the next
            continue
        finally:
            for hook in hooks:
                hook.remove()
        if at_head:
            return all(at_head)
    return False


def _keep(normed: list[Tensor]) -> Callable[..., None]:
    return lambda module, inputs, output: normed.append(output)


def _compare(normed: list[Tensor], at_head: list[bool]) -> Callable[..., None]:
    """Same memory, same numbers: a flattened, squeezed or (in eval mode) dropped-out batch norm output."""

    def hook(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        at_head.append(
            any(
                h.data_ptr() == inputs[0].data_ptr() and h.numel() == inputs[0].numel()
                for h in normed
            )
        )

    return hook
