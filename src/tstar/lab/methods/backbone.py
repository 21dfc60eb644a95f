"""The gradient into the backbone, scaled beside a temperature: for the controlled studies."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.head import Norm, TemperedHead, class_dim
from tstar.output_layer import Head, run_copy, runs_on

Backbone = Literal["as-is", "matched", "times-t"]


def scale_backbone(head: TemperedHead, c: float) -> None:
    """In training, multiply the gradient that reaches the head's features by c·T."""
    head.backbone = c  # type: ignore[assignment]
    head.register_forward_pre_hook(partial(_scale, c))


def _scale(c: float, head: TemperedHead, inputs: tuple[Tensor]) -> Tensor | None:
    if not (head.training and inputs[0].requires_grad):
        return None
    features, factor = inputs[0].view_as(inputs[0]), c * head.temperature
    features.register_hook(lambda gradient: gradient * factor)  # type: ignore[no-untyped-call]
    return features


def matched_backbone(model: nn.Module, head: Head, batch: Any, norm: Norm | None) -> float:
    """c at which a head with this norm sends the backbone the plain head's gradient, at T = 1.

    Both heads get the same random gradient at their logits, on one batch in training mode.
    """
    if norm is None:
        return 1.0
    twins: list[nn.Module] = []
    seen: list[Tensor] = []

    def prepare(twin: nn.Module) -> None:
        twins.append(twin)
        layer = twin.get_submodule(head.path)
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))

    with torch.enable_grad(), runs_on("the batch"):
        run_copy(model, batch, prepare, training=True, meta=(False,))
        layer = twins[0].get_submodule(head.path)
        own = {id(p) for p in layer.parameters()}
        backbone = [p for p in twins[0].parameters() if p.requires_grad and id(p) not in own]
        if not backbone:
            return 1.0
        logits = [layer(seen[0]), TemperedHead(layer, 1.0, norm).train()(seen[0])]
    signal = torch.randn(logits[0].shape, generator=torch.Generator().manual_seed(0)).to(seen[0])
    signal = signal - signal.mean(class_dim(layer), keepdim=True)  # as a softmax's
    norms = []
    for z in logits:
        found = torch.autograd.grad(z, backbone, signal, retain_graph=True, allow_unused=True)
        squares = [float(g.double().square().sum()) for g in found if g is not None]
        norms.append(math.sqrt(sum(squares)))
    if not (all(norms) and math.isfinite(norms[0] / norms[1])):
        raise TstarError(
            "The backbone's gradient must be finite and above zero to be matched; check the batch "
            "and the head's weight, or leave backbone out."
        )
    return norms[0] / norms[1]
