"""Meta KD: distillation temperatures trained by a meta-gradient on validation data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.methods.common import Loss, missing, plain_copy
from tstar.methods.distilling import Distillation, divergence
from tstar.methods.interface import Facts, Recipe

LOWEST, HIGHEST = 1.0, 20.0


def lookahead_loss(
    model: nn.Module,
    train_loss: Loss,
    batch: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    lr: float,
) -> Tensor:
    r"""L_val(θ'), θ' = θ − η·∇_θ L_train(θ, τ): differentiable in whatever ``train_loss`` depends on.

    Symbols: θ the model's parameters, η ``lr``, L_train ``train_loss`` on ``batch``, L_val the
    cross-entropy on ``validation``. One plain SGD step (no momentum, no decay). The model keeps its
    parameters, its BatchNorm statistics, its mode and the generator's state.
    """
    theta = {
        name: p.detach().requires_grad_() for name, p in model.named_parameters() if p.requires_grad
    }
    rest = {name: p.detach() for name, p in model.named_parameters() if not p.requires_grad}
    buffers = {name: b.clone() for name, b in model.named_buffers()}

    def output(parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        state = {**parameters, **rest, **buffers}
        logits: Tensor = torch.func.functional_call(model, state, (inputs,))
        return logits

    devices = [p.device for p in theta.values() if p.device.type == "cuda"][:1]
    with torch.enable_grad(), torch.random.fork_rng(devices=devices):
        inputs, targets = batch
        loss = train_loss(output(theta, inputs), targets, inputs)
        gradients = torch.autograd.grad(loss, [*theta.values()], create_graph=True)
        ahead = {name: p - lr * g for (name, p), g in zip(theta.items(), gradients, strict=True)}
        return F.cross_entropy(output(ahead, validation[0]), validation[1])


@dataclass(frozen=True)
class MetaKD(Distillation):
    r"""L_train = w_ce·CE(z_s, y) + w_kd·τ_s·τ_t·KL(softmax(z_t/τ_t) ‖ softmax(z_s/τ_s)),

    with θ' = θ − η∇_θ L_train(θ, τ) and τ ← clip(τ − η_τ·∇_τ L_val(θ'(τ)), 1, 20) before each step.

    η is the present learning rate; L_val is the cross-entropy on a batch of validation data of the
    size of the training batch, taken in turn.

    Reference: Liu et al. 2022, "Meta Knowledge Distillation". The form is from memory of that paper
    and not confirmed (K): it, the start τ₀ = 4, the bounds, η_τ, the weights and the factor τ_s·τ_t
    are to be read as ours.
    """

    tau: float = 4.0
    tau_lr: float = 10.0
    name = "meta-kd"
    needs = frozenset({"teacher", "validation"})

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        if facts.validation is None or len(facts.validation[1]) == 0:
            raise missing(
                self.name,
                "validation data",
                "hold out a part of the training set (val_fraction > 0).",
            )
        held_out = facts.validation
        start = torch.full((2,), min(max(self.tau, LOWEST), HIGHEST))
        taus = nn.Parameter(start)  # (τ_s, τ_t): trained here, not by the optimizer
        seen = 0

        def soft(z_s: Tensor, z_t: Tensor) -> Tensor:
            tau_s, tau_t = taus.to(z_s.device, z_s.dtype)
            return divergence(z_s, z_t, tau_s, tau_t)

        loss = self.loss(facts, soft)

        def on_batch(model: nn.Module, inputs: Tensor, targets: Tensor, lr: float) -> None:
            nonlocal seen
            size = len(held_out[1])
            rows = torch.arange(seen, seen + min(len(targets), size)) % size
            seen = (seen + len(rows)) % size
            validation = (held_out[0][rows].to(inputs), held_out[1][rows].to(targets))
            outer = lookahead_loss(model, loss, (inputs, targets), validation, lr)
            (gradient,) = torch.autograd.grad(outer, taus)
            if not bool(torch.isfinite(gradient).all()):
                return  # the run itself is diverging: its own loss will say so
            with torch.no_grad():
                taus.sub_(self.tau_lr * gradient).clamp_(LOWEST, HIGHEST)

        def training_loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
            taus.requires_grad_(False)  # the student's own step takes no gradient of τ
            try:
                return loss(logits, targets, inputs)
            finally:
                taus.requires_grad_(True)

        def report() -> dict[str, float]:
            return {"tau_student": taus[0].item(), "tau_teacher": taus[1].item()}

        recipe = plain_copy(model, facts)
        recipe.loss, recipe.on_batch, recipe.report = training_loss, on_batch, report
        return recipe
