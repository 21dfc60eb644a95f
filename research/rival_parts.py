"""What a user would pick instead of T, as parts of a run: optimizers, heads, finders; named ``research.rival_parts:NAME``.

An optimizer is ``f(parameters, lr=…, weight_decay=…)``, a schedule ``f(step, steps)``, a method ``f(model, setting) -> Recipe``.
Schedule-free and DoG test an average of the weights, for which the running statistics of the norms are measured anew.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from dog import DoG, LDoG, PolynomialDecayAverager
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch import Tensor, nn

from tstar.lab.methods.common import cross_entropy, with_head
from tstar.lab.recipe import Recipe, Setting

KEPT = 50  # batches, the last ones, with which norms are measured anew
_latest: list[torch.optim.Optimizer] = []  # the optimizer of the run under way, if it averages

# -- optimizers ------------------------------------------------------------------------------------


def prodigy(parameters: Any, lr: float, weight_decay: float, d0: float = 1e-6) -> Prodigy:
    with contextlib.redirect_stdout(io.StringIO()):  # it says that its decay is decoupled
        return Prodigy(parameters, lr=lr, weight_decay=weight_decay, d0=d0)


def prodigy_4(parameters: Any, lr: float, weight_decay: float) -> Prodigy:
    return prodigy(parameters, lr, weight_decay, 1e-4)


def nadamw(parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    """Nesterov's Adam at AlgoPerf's betas; so large a momentum_decay is a constant β₁."""
    return torch.optim.NAdam(
        parameters,
        lr=lr,
        betas=(0.93266, 0.99552),
        weight_decay=weight_decay,
        decoupled_weight_decay=True,
        momentum_decay=1e6,
    )


def _averaging(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    _latest[:] = [optimizer]
    return optimizer


def free_adamw(parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    made = AdamWScheduleFree(parameters, lr=lr, weight_decay=weight_decay)
    made.train()
    return _averaging(made)


def free_sgd(parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    made = SGDScheduleFree(parameters, lr=lr, weight_decay=weight_decay)
    made.train()
    return _averaging(made)


def dog(parameters: Any, weight_decay: float) -> torch.optim.Optimizer:
    return DoG(parameters, reps_rel=1e-6, weight_decay=weight_decay)


def dog_norms(parameters: Any, weight_decay: float) -> torch.optim.Optimizer:
    """The first distance that its authors take for networks with batch norms."""
    return DoG(parameters, reps_rel=1e-4, weight_decay=weight_decay)


def ldog(parameters: Any, weight_decay: float) -> torch.optim.Optimizer:
    return LDoG(parameters, reps_rel=1e-6, weight_decay=weight_decay)


def ldog_norms(parameters: Any, weight_decay: float) -> torch.optim.Optimizer:
    return LDoG(parameters, reps_rel=1e-4, weight_decay=weight_decay)


def _remeasure(model: nn.Module, batches: deque[Tensor]) -> None:
    """The running statistics of every batch norm, as the mean over these batches."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    with torch.no_grad():
        for batch in batches:
            model(batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def schedule_free(model: nn.Module, setting: Setting) -> Recipe:
    """The model as it is; at the end the optimizer's average, and the norms measured anew."""
    kept: deque[Tensor] = deque(maxlen=KEPT)

    def finish(trained: nn.Module, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        _latest[0].eval()  # type: ignore[attr-defined]
        _remeasure(trained, kept)
        return {}

    changed = copy.deepcopy(model)
    return Recipe(
        changed,
        cross_entropy(setting),
        on_batch=lambda m, inputs, y, lr: kept.append(inputs),
        finish=finish,
    )


def averaged(model: nn.Module, setting: Setting) -> Recipe:
    """The model as it is; at the end its polynomial average (DoG's), and the norms measured anew."""
    changed = copy.deepcopy(model)
    average = PolynomialDecayAverager(changed)
    kept: deque[Tensor] = deque(maxlen=KEPT)

    def on_batch(m: nn.Module, inputs: Tensor, targets: Tensor, lr: float) -> None:
        if kept:  # after the first step
            average.step()
        kept.append(inputs)

    def finish(trained: nn.Module, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        average.step()
        trained.load_state_dict(average.averaged_model.state_dict())
        _remeasure(trained, kept)
        return {}

    return Recipe(changed, cross_entropy(setting), on_batch=on_batch, finish=finish)


# -- heads -----------------------------------------------------------------------------------------


class Normed(nn.Module):
    """A norm, then the output layer; over the last axis of vectors."""

    def __init__(self, norm: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.norm, self.layer = norm, layer

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layer(self.norm(features))
        return logits


def bnneck(model: nn.Module, setting: Setting) -> Recipe:
    """Luo et al. 2019: BN without a shift, the output layer without a bias, drawn with deviation 0.001."""

    def change(layer: nn.Module) -> nn.Module:
        norm = nn.BatchNorm1d(setting.num_features)
        norm.bias.requires_grad_(False)
        made = nn.Linear(setting.num_features, setting.num_classes, bias=False)
        nn.init.normal_(made.weight, std=0.001)
        return Normed(norm, made)

    return with_head(model, setting, change)


def mae_norm(model: nn.Module, setting: Setting) -> Recipe:
    """He et al. 2022, of a linear probe: BN without weights before the output layer as it is."""

    def change(layer: nn.Module) -> nn.Module:
        return Normed(nn.BatchNorm1d(setting.num_features, affine=False, eps=1e-6), layer)

    return with_head(model, setting, change)


def zero_head(model: nn.Module, setting: Setting) -> Recipe:
    """The output layer starts at zero."""

    def change(layer: nn.Module) -> nn.Module:
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
        return layer

    return with_head(model, setting, change)


class Cosine(nn.Module):
    """s·cos of the features and each class's weights; s, a buffer, is AdaCos's own of every batch."""

    scale: Tensor

    def __init__(self, layer: nn.Module, scale: float) -> None:
        super().__init__()
        self.layer = layer
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, features: Tensor) -> Tensor:
        weight: Any = self.layer.weight
        return self.scale * (F.normalize(features, dim=-1) @ F.normalize(weight, dim=1).T)


def adacos(model: nn.Module, setting: Setting) -> Recipe:
    """Zhang et al. 2019, dynamic: s = ln(mean over the batch of Σ_{k≠y} exp(s·cos θ_k)) / cos(min(π/4, median θ_y))."""
    first = math.sqrt(2) * math.log(max(setting.num_classes, 3) - 1)  # at K = 2 it would be 0
    changed = with_head(model, setting, lambda layer: Cosine(layer, first)).model
    head = next(m for m in changed.modules() if isinstance(m, Cosine))
    smooth = cross_entropy(setting)

    def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            own = F.one_hot(targets, logits.shape[1]).bool()
            others = logits.exp().masked_fill(own, 0.0).sum(1).mean()
            angle = (logits[own] / head.scale).clamp(-1, 1).acos().median().clamp(max=math.pi / 4)
            new = others.log() / angle.cos()
            ratio = new / head.scale
            head.scale = new  # not in place: the gradient needs the old one
        return smooth(logits * ratio, targets, inputs)

    return Recipe(changed, loss, report=lambda: {"scale": float(head.scale)})


class UnitVariance(nn.Module):
    """Logits divided by their deviation over the classes."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layer(features)
        return logits / logits.std(-1, keepdim=True).clamp(min=1e-6)


def normsoftmax(model: nn.Module, setting: Setting) -> Recipe:
    """Jiang et al. 2023: softmax of logits with unit variance."""
    return with_head(model, setting, UnitVariance)


# -- learning-rate finders -------------------------------------------------------------------------

STEPS = 100


def lightning_rates(step: int, steps: int) -> float:
    return float(10.0 ** (-8 + 8 * step / (steps - 1)))


def fastai_rates(step: int, steps: int) -> float:
    return float(10.0 ** (-7 + 8 * step / (steps - 1)))


def steepest(lrs: list[float], losses: list[float]) -> int:
    """The place of the most negative slope of loss over rate, ten skipped at the start and one at the end (Lightning)."""
    found, rates = torch.tensor(losses[10:-1]), torch.tensor(lrs[10:-1])
    return 10 + int(torch.gradient(found, spacing=[rates])[0].argmin()) if len(found) > 1 else 0


def valley(lrs: list[float], losses: list[float]) -> int:
    """The middle of the longest falling subsequence, a tenth skipped at the start and five at the end (fastai)."""
    skipped = STEPS // 10
    kept = losses[skipped:-5]
    if not kept:
        return 0
    length = [1] * len(kept)
    for i in range(1, len(kept)):
        length[i] = 1 + max((length[j] for j in range(i) if kept[i] < kept[j]), default=0)
    end = max(range(len(kept)), key=lambda i: length[i])
    third = int(length[end] / 3)
    return skipped + max(0, end - length[end]) + third + third // 2


def _finder(rates: Callable[[int, int], float], choose: Callable[[list[float], list[float]], int]) -> Callable[..., Recipe]:  # fmt: skip
    """Trains with a rising rate and reports the one to take: loss smoothed by .98, ended at four times its best."""

    def method(model: nn.Module, setting: Setting) -> Recipe:
        plain, seen = cross_entropy(setting), list[float]()

        def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
            value = plain(logits, targets, inputs)
            seen.append(float(value.detach()))
            return value

        def report() -> dict[str, float]:
            smooth, mean, best = list[float](), 0.0, math.inf
            for step, value in enumerate(seen):
                mean = 0.98 * mean + 0.02 * value
                smooth.append(mean / (1 - 0.98 ** (step + 1)))
                if not math.isfinite(smooth[-1]):
                    smooth.pop()
                    break
                if step > 0 and smooth[-1] > 4 * best:
                    break
                best = min(best, smooth[-1])
            lrs = [rates(step, STEPS) for step in range(len(smooth))]
            return {"suggestion": lrs[choose(lrs, smooth)], "finder_steps": len(smooth)}

        return Recipe(copy.deepcopy(model), loss, report=report)

    return method


lightning_finder = _finder(lightning_rates, steepest)
fastai_finder = _finder(fastai_rates, valley)
