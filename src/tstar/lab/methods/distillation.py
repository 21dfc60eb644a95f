"""Distillation: a trained teacher's logits as soft targets, at a fixed or a learned temperature.

Symbols: z_s the student's and z_t the teacher's logits (B, K), τ a temperature.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.lab.methods.common import default, missing
from tstar.lab.recipe import Loss, Recipe, Setting, cross_entropy

LOWEST, HIGHEST = 1.0, 20.0  # bounds of Meta KD's temperatures


def divergence(
    student: Tensor, teacher: Tensor, tau_s: float | Tensor, tau_t: float | Tensor | None = None
) -> Tensor:
    r"""τ_s·τ_t·KL(softmax(z_t/τ_t) ‖ softmax(z_s/τ_s)), the mean over the batch.

    With one temperature the factor is Hinton's τ², which keeps the gradient's size as τ grows;
    the product for two is ours.
    """
    tau_t = tau_s if tau_t is None else tau_t
    if student.shape != teacher.shape:
        raise TstarError(
            "Teacher and student must give one logit for each of the same classes, got shapes "
            f"{tuple(teacher.shape)} and {tuple(student.shape)}; train a teacher on this data set."
        )
    log_q = F.log_softmax(teacher / tau_t, dim=1)
    log_p = F.log_softmax(student / tau_s, dim=1)
    return tau_s * tau_t * F.kl_div(log_p, log_q, reduction="batchmean", log_target=True)


def _distilled(
    model: nn.Module,
    setting: Setting,
    soft: Callable[[Tensor, Tensor], Tensor],
    weight: float = 0.9,
) -> Recipe:
    """L = 0.1·CE(z_s, y) + weight·soft(z_s, z_t), the teacher a frozen copy in eval mode."""
    if setting.teacher is None:
        raise TstarError(
            "Distillation needs a teacher; pass a trained model with the same classes as "
            "Setting.teacher."
        )
    teacher = copy.deepcopy(setting.teacher).eval().requires_grad_(False)
    hard = cross_entropy(setting)

    def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            taught = teacher.to(inputs.device)(inputs)
        return 0.1 * hard(logits, targets, inputs) + weight * soft(logits, taught)

    recipe = default(model, setting)
    recipe.loss = loss
    return recipe


def kd(model: nn.Module, setting: Setting, *, tau: float = 4.0) -> Recipe:
    r"""L = 0.1·CE(z_s, y) + 0.9·τ²·KL(softmax(z_t/τ) ‖ softmax(z_s/τ)).

    As τ grows the second term's gradient becomes that of matching centered logits.

    Reference: Hinton, Vinyals & Dean 2015; τ = 4, 0.1 and 0.9 as in mdistiller (S).
    """
    return _distilled(model, setting, lambda s, t: divergence(s, t, tau))


def standardize(logits: Tensor) -> Tensor:
    """Z(z) = (z − mean_k z)/(1e-7 + std_k z) for each sample, with the unbiased std."""
    centered = logits - logits.mean(dim=1, keepdim=True)
    return centered / (1e-7 + logits.std(dim=1, keepdim=True))


def logit_standardization(model: nn.Module, setting: Setting, *, tau: float = 2.0) -> Recipe:
    r"""L = 0.1·CE(z_s, y) + 9·τ²·KL(softmax(Z(z_t)/τ) ‖ softmax(Z(z_s)/τ)).

    Z standardizes a sample's logits, so that each sample's own spread is its temperature.

    Reference: Sun et al. 2024, "Logit Standardization in Knowledge Distillation"; τ = 2 (S).
    """

    def soft(z_s: Tensor, z_t: Tensor) -> Tensor:
        return divergence(standardize(z_s), standardize(z_t), tau)

    return _distilled(model, setting, soft, weight=9.0)


def reversal(epoch: int) -> float:
    """λ(e) = ½(1 + cos(π·min(e, 10)/10)) − 1, e from 1: from almost 0 down to −1."""
    return 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1


class AdversarialTemperature(nn.Module):
    """τ = 1 + 20·sigmoid(u), u₀ = 1, ∂/∂u multiplied by ``factor`` (λ of the epoch)."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.tensor(1.0))
        self.factor = reversal(1)

    def forward(self) -> Tensor:
        still = self.u.detach()
        return 1 + 20 * torch.sigmoid(still + self.factor * (self.u - still))


def ctkd(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = 0.1·CE(z_s, y) + 0.9·τ²·KL(softmax(z_t/τ) ‖ softmax(z_s/τ)).

    With τ = 1 + 20·sigmoid(u), the student descends L; u receives ∂L/∂u·λ(e). As λ goes
    from 0 to −1 it climbs L, which makes the task harder as training goes on. The student's own
    optimizer trains u.

    Reference: Li et al. 2023, "Curriculum Temperature for Knowledge Distillation", the global
    temperature; u₀ = 1, 0.1 and 0.9, ten epochs for λ (S).
    """
    tau = AdversarialTemperature().to(next(model.parameters()))
    recipe = _distilled(model, setting, lambda s, t: divergence(s, t, tau()))

    def on_epoch(epoch: int, epochs: int) -> float:
        tau.factor = reversal(epoch)
        return 1.0

    recipe.on_epoch, recipe.report = on_epoch, lambda: {"tau": tau().item()}
    recipe.extra = nn.ModuleList([tau])
    return recipe


def lookahead_loss(
    model: nn.Module,
    train_loss: Loss,
    batch: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    lr: float,
) -> Tensor:
    r"""L_val(θ'), θ' = θ − η·∇_θ L_train(θ, τ): differentiable in τ.

    Symbols: θ the model's parameters, η ``lr``, L_train ``train_loss`` on ``batch``, L_val the
    cross-entropy on ``validation``. One plain SGD step (no momentum, no decay). The model keeps its
    parameters, its BatchNorm statistics, its mode and the generator's state.
    """
    state = {name: p.detach() for name, p in model.named_parameters()}
    theta = {n: state[n].requires_grad_() for n, p in model.named_parameters() if p.requires_grad}
    state |= {name: b.clone() for name, b in model.named_buffers()}

    def output(changed: dict[str, Tensor], inputs: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(model, state | changed, (inputs,))
        return logits

    devices = [p.device for p in theta.values() if p.device.type == "cuda"][:1]
    with torch.enable_grad(), torch.random.fork_rng(devices=devices):
        inputs, targets = batch
        loss = train_loss(output(theta, inputs), targets, inputs)
        gradients = torch.autograd.grad(loss, [*theta.values()], create_graph=True)
        ahead = {name: p - lr * g for (name, p), g in zip(theta.items(), gradients, strict=True)}
        return F.cross_entropy(output(ahead, validation[0]), validation[1])


def meta_kd(
    model: nn.Module, setting: Setting, *, tau: float = 4.0, tau_lr: float = 10.0
) -> Recipe:
    r"""L_train = 0.1·CE(z_s, y) + 0.9·τ_s·τ_t·KL(softmax(z_t/τ_t) ‖ softmax(z_s/τ_s)),

    with θ' = θ − η∇_θ L_train(θ, τ). Before each step τ descends L_val(θ') at rate η_τ
    and is clipped to [1, 20].

    η is the present learning rate; L_val is the cross-entropy on a batch of validation data of the
    size of the training batch, taken in turn.

    Reference: Liu et al. 2022, "Meta Knowledge Distillation" (arXiv 2202.07940): the temperatures
    of teacher and student are meta parameters, adjusted by gradients of the learning objective
    (S). Uncertain, and to be read as ours: that the outer loss is on held-out data, the one-step
    look-ahead, one temperature for all samples, τ₀ = 4, the bounds, η_τ, the weights and the
    factor τ_s·τ_t.
    """
    if setting.validation is None or len(setting.validation[1]) == 0:
        raise missing("meta-kd", "validation data")
    held_out = setting.validation
    # (τ_s, τ_t): trained here, not by the optimizer
    taus = torch.full((2,), min(max(tau, LOWEST), HIGHEST))
    seen = 0

    def soft(z_s: Tensor, z_t: Tensor) -> Tensor:
        return divergence(z_s, z_t, *taus.to(z_s.device, z_s.dtype))

    recipe = _distilled(model, setting, soft)
    loss = recipe.loss

    def on_batch(model: nn.Module, inputs: Tensor, targets: Tensor, lr: float) -> None:
        nonlocal seen
        size = len(held_out[1])
        rows = torch.arange(seen, seen + min(len(targets), size)) % size
        seen = (seen + len(rows)) % size
        validation = (held_out[0][rows].to(inputs), held_out[1][rows].to(targets))
        taus.requires_grad_(True)
        outer = lookahead_loss(model, loss, (inputs, targets), validation, lr)
        (gradient,) = torch.autograd.grad(outer, taus)
        taus.requires_grad_(False)  # the student's own step takes no gradient of τ
        if bool(torch.isfinite(gradient).all()):  # else the run diverges, as its own loss will say
            taus.sub_(tau_lr * gradient).clamp_(LOWEST, HIGHEST)

    recipe.on_batch = on_batch
    recipe.report = lambda: {"tau_student": taus[0].item(), "tau_teacher": taus[1].item()}
    return recipe
