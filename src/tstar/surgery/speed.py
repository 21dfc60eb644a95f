"""How fast a model learns: what the norm before the head and T change beside the logits.

"BN before the head, logits ÷ T" changes the gradient that reaches the backbone: BN multiplies it by about 1/σ, with σ
the features' standard deviation, and the division by T divides it by T. A head with ``backbone=c`` multiplies it by c·T
again, so that c = σ gives back the gradient of the plain model.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.surgery.finding import Head
from tstar.surgery.head import Norm, TemperedHead
from tstar.surgery.probing import call, undisturbed


def matched_backbone(
    model: nn.Module, head: Head, batch: Any, norm: Norm | None = "batch", seed: int = 0
) -> float:
    """c at which a tempered head sends the backbone a gradient as large as the plain head does.

    Both heads get the same random gradient at their logits, in training mode, on one batch; c is the ratio of the norms
    of what the backbone's parameters receive, at T = 1. No labels are needed. Nothing about the model changes.
    """
    if norm is None:
        return 1.0
    own = {id(p) for p in head.layer.parameters()}
    backbone = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    if not backbone:
        return 1.0
    layer = model.get_submodule(head.path)
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        with undisturbed(model, training=True), torch.enable_grad():
            call(model, batch)
            features = seen[0]
            tempered = TemperedHead(layer, 1.0, norm).train()
            plain_logits, logits = layer(features), tempered(features)
            generator = torch.Generator().manual_seed(seed)
            signal = torch.randn(logits.shape, generator=generator).to(logits)
            signal = signal - signal.mean(1, keepdim=True)  # a softmax's gradient sums to zero
            received = [
                torch.autograd.grad(out, backbone, signal, retain_graph=True, allow_unused=True)
                for out in (plain_logits, logits)
            ]
    finally:
        hook.remove()
    plain, changed = (
        math.sqrt(sum(float(g.double().square().sum()) for g in grads if g is not None))
        for grads in received
    )
    if not (plain > 0 and changed > 0):
        raise TstarError(
            "No gradient reaches the backbone, so its speed cannot be matched (is the head's weight zero?); leave "
            "backbone out."
        )
    return plain / changed
