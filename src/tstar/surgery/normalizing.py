"""How a network normalizes its own features: what decides whether a norm before the head is worth having."""

from __future__ import annotations

from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

Norms = Literal["batch-norms", "layer-norms", "no norms", "frozen"]
_PER_SAMPLE = ("layernorm", "groupnorm", "instancenorm", "rmsnorm", "channelnorm")


def norms_of(model: nn.Module, layer: nn.Module) -> Norms:
    """``"frozen"`` where the output layer alone is trained, else the kind of the norms inside.

    A network that has both kinds counts as one with batch norms: they see the batch as the inserted one does.
    """
    own = {id(parameter) for parameter in layer.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    if not trained:
        return "frozen"
    modules = list(model.modules())
    if any(isinstance(module, _BatchNorm) for module in modules):
        return "batch-norms"
    names = [type(module).__name__.lower() for module in modules]
    if any(kind in name for name in names for kind in _PER_SAMPLE):
        return "layer-norms"
    return "no norms"
