"""Methods whose temperature is a closed form (:mod:`tstar.lab.methods.rules`), or given."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.formula import temperature
from tstar.head import Norm, class_dim, weight_of
from tstar.lab.methods.common import at_temperature, missing, with_head
from tstar.lab.methods.rules import adacos_scale, normface_scale, rule
from tstar.lab.recipe import Recipe, Setting
from tstar.schedule import Schedule


def fixed(
    model: nn.Module,
    setting: Setting,
    *,
    temperature: float = 1.0,
    norm: Norm | Literal["none"] | None = None,
) -> Recipe:
    r"""L = CE(z/T, y) at a given T, for sweeps and for those who know better.

    Args:
        temperature: T > 0.
        norm: ``"batch"`` inserts the paper's BatchNorm before the output layer, ``None`` (in files
            ``"none"``) nothing.
    """
    return at_temperature(model, temperature, setting, None if norm == "none" else norm)


def sqrt_m(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(z/sqrt(M), y), no norm inserted: attention's rule, the output layer's rows as keys.

    Reference: Vaswani et al. 2017, eq. 1; the paper's row "T = sqrt(M)" (S).
    """
    return at_temperature(model, rule("sqrt-m", setting.num_features), setting, norm=None)


def ours(
    model: nn.Module, setting: Setting, *, variant: Literal["base", "csg", "cn", "csgcn"] = "cn"
) -> Recipe:
    r"""L = CE(z/T*, y), z = W·BN(h) + b, T* the closed form of :mod:`tstar.formula`.

    Reference: Hasegawa & Sakai; four coefficient sets, ``variant`` = base, csg, cn, csgcn (S).
    """
    if "csg" in variant and setting.csg is None:
        hint = "pass csg=… (see tstar.csg), or take 'ours-cn' or 'ours-base'."
        raise missing(f"ours-{variant}", "csg", hint)
    T = temperature(setting.num_features, setting.num_classes, setting.csg, variant=variant)
    return at_temperature(model, T, setting, norm="batch")


class UnitHead(nn.Module):
    r"""z = (w_k/‖w_k‖)·g(h) / T, no bias; g(h) = h/‖h‖ (cosine) or BatchNorm(h).

    The raw rows start as those of the layer that it replaces. ``temperature`` is a buffer, as in a
    tempered head, so that a schedule can drive it. Nothing can be folded: the weights stay
    normalized while they train, and a cosine divides by the sample's own norm.
    """

    temperature: Tensor

    def __init__(self, layer: nn.Module, temperature: float, features: str) -> None:
        super().__init__()
        weight = weight_of(layer).flatten(1)
        self.weight = nn.Parameter(weight.detach().clone())
        self.norm: nn.BatchNorm1d | None = None
        if features == "batch":
            self.norm = nn.BatchNorm1d(weight.shape[1], device=weight.device, dtype=weight.dtype)
        self.register_buffer("temperature", torch.tensor(temperature, device=weight.device))
        self._dim = class_dim(layer)

    def set_temperature(self, temperature: float) -> None:
        self.temperature.fill_(temperature)

    def forward(self, features: Tensor) -> Tensor:
        h = features.movedim(self._dim, -1)
        if self.norm is None:
            h = F.normalize(h, dim=-1)
        else:
            h = self.norm(h.reshape(-1, h.shape[-1])).reshape(h.shape)
        logits = F.linear(h, F.normalize(self.weight, dim=-1))
        return (logits / self.temperature).movedim(-1, self._dim)


def heated_up(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(ŵ_k·BN(h)/T, y), ŵ_k = w_k/‖w_k‖, T = sqrt(M)/16; then 4·T.

    The last quarter of the epochs runs at 4·T and a tenth of the learning rate.

    Reference: Zhang et al. 2018, "Heated-Up Softmax Embedding" (S).
    """
    T = rule("heated-up", setting.num_features)
    recipe = with_head(model, setting, lambda layer: UnitHead(layer, T, "batch"))
    heated = Schedule(lambda hot: 4 * T if hot else T).drive(recipe.model)

    def on_epoch(epoch: int, epochs: int) -> float:
        hot = 4 * (epoch - 1) >= 3 * epochs
        heated.go_to(int(hot))
        return 0.1 if hot else 1.0

    recipe.on_epoch, recipe.report = on_epoch, lambda: {"temperature": 4 * T}
    return recipe


def adacos_fixed(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(s·cos(w_k, h), y) with s = sqrt(2)·ln(K − 1); refused at K = 2, where s = 0.

    Reference: Zhang et al. 2019, "AdaCos", the fixed scale (S).
    """
    T = 1 / adacos_scale(setting.num_classes)
    return with_head(model, setting, lambda layer: UnitHead(layer, T, "cosine"))


def normface_bound(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(s·cos(w_k, h), y) with s = (K−1)/K·ln((K−1)·P/(1−P)), P = 0.99.

    Reference: Wang et al. 2017, "NormFace"; Wang et al. 2018, "CosFace", the bound on s (S). That
    we take the bound itself as the scale, and P = 0.99, is ours.
    """
    T = 1 / normface_scale(setting.num_classes)
    return with_head(model, setting, lambda layer: UnitHead(layer, T, "cosine"))
