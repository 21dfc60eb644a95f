"""What kind of network it is, as far as an advice depends on it: its norms, what is trained, attention."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

Norms = Literal["batch-norms", "layer-norms", "no norms", "frozen"]
# Names of classes, and for a query of modules: qkv, to_q, wq, query, query_key_value, q_proj, projection_query, …
_LAYER_NORM = re.compile(r"(?i)layer_?norm|rms_?norm|channelnorm")
_ATTENTION = re.compile(r"(?i)attention|attn|mhsa")
_QUERY = re.compile(r"(?i)(^|_)w?(q|qkv|query)(_|$)")
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
    """Whether it is a transformer: layers of attention, and no more batch norms than layer norms.

    Attention has a query; a name alone counts where there are layer norms. The norms tell a transformer from a convolutional
    network with attention over channels or in its pooling.
    """
    modules = dict(model.named_modules())
    batch = sum(isinstance(module, _BatchNorm) for module in modules.values())
    layer = sum(bool(_LAYER_NORM.search(type(module).__name__)) for module in modules.values())
    return layer >= batch and any(
        isinstance(module, nn.MultiheadAttention)
        or _QUERY.search(path.rpartition(".")[2])
        or (layer and _ATTENTION.search(type(module).__name__))
        for path, module in modules.items()
    )
