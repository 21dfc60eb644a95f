"""What kind of network it is, as far as an advice depends on it: its norms, what is trained, attention."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

Norms = Literal["batch-norms", "layer-norms", "no norms", "frozen"]
_PER_SAMPLE = ("layernorm", "groupnorm", "instancenorm", "rmsnorm", "channelnorm")


def norms_of(model: nn.Module, layer: nn.Module, held: Container[int] | None = None) -> Norms:
    """``"frozen"`` where the output layer alone is trained, else the kind of the norms inside.

    ``held`` are the ids of the parameters that an optimizer trains, where one is known.
    A network that has both kinds counts as one with batch norms: they see the batch as the inserted one does.
    """
    own = {id(parameter) for parameter in layer.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    if not any(held is None or id(p) in held for p in trained):
        return "frozen"
    modules = list(model.modules())
    if any(isinstance(module, _BatchNorm) for module in modules):
        return "batch-norms"
    names = [type(module).__name__.lower() for module in modules]
    if any(kind in name for name in names for kind in _PER_SAMPLE):
        return "layer-norms"
    return "no norms"


def is_mostly_frozen(model: nn.Module) -> bool:
    """Whether fewer than half of the parameters are trained, as with low-rank adapters."""
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]
    return 2 * sum(size for size, trained in sizes if trained) < sum(size for size, _ in sizes)


def attends(model: nn.Module) -> bool:
    """Whether it is a transformer, told by the names of its modules."""
    return any("attention" in type(module).__name__.lower() for module in model.modules())
