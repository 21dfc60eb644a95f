r"""Temperatures in closed form, all on one axis; nothing here imports torch.

With features that a BatchNorm normalized ‖h‖ is about sqrt(M). If the rows of the output layer
have norm r, a cosine classifier with scale s is a plain one at temperature

    T = r·sqrt(M)/s,

with r = 1/sqrt(3), the row norm at ``nn.Linear``'s default initialization. So every rule below is a
temperature, and all can be drawn beside the paper's formula.

Symbols: M ``num_features``, K ``num_classes``.
"""

from __future__ import annotations

import math

from tstar.errors import TstarError, positive, share, unknown, whole
from tstar.formula import temperature

ROW_NORM = 1 / math.sqrt(3)


def adacos_scale(num_classes: int | None) -> float:
    """s = sqrt(2)·ln(K − 1), AdaCos' fixed scale (Zhang et al. 2019); 0 at K = 2: refused."""
    K = whole("num_classes", num_classes, least=2)
    if K < 3:
        raise TstarError("AdaCos' fixed scale needs K >= 3 classes, got 2; take normface-bound.")
    return math.sqrt(2) * math.log(K - 1)


def normface_scale(num_classes: int | None, probability: float = 0.99) -> float:
    """s = (K−1)/K·ln((K−1)·P/(1−P)): the smallest scale with which cosines reach P.

    Reference: Wang et al. 2018, "CosFace", the bound on s; Wang et al. 2017, "NormFace".
    """
    K, P = whole("num_classes", num_classes, least=2), share("probability", probability)
    return (K - 1) / K * math.log((K - 1) * P / (1 - P))


def from_scale(scale: float, num_features: int) -> float:
    """T = r·sqrt(M)/s: the temperature that a cosine scale s amounts to."""
    return ROW_NORM * math.sqrt(num_features) / positive("scale", scale)


# The rules by name, each as a page shows it.
LABELS = {
    "default": "T = 1",
    "sqrt-m": "sqrt(M)",
    "heated-up": "heated-up, sqrt(M)/16",
    "adacos-fixed": "AdaCos, fixed",
    "normface-bound": "NormFace bound, P = 0.99",
    "mup-readout": "µP readout",
    "ours-base": "Hasegawa & Sakai",
    "ours-csg": "Hasegawa & Sakai, csg",
    "ours-cn": "Hasegawa & Sakai, cn",
    "ours-csgcn": "Hasegawa & Sakai, csg + cn",
}


def rule(
    name: str,
    num_features: int,
    num_classes: int | None = None,
    csg: float | None = None,
    *,
    base_features: int | None = None,
) -> float:
    """The temperature of the rule of that name; an error says which fact it lacks.

    >>> round(rule("adacos-fixed", 512, 10), 2)
    4.2
    """
    M, K = whole("num_features", num_features, least=1), num_classes
    match name:
        case "default":
            return 1.0
        case "sqrt-m":  # attention's softmax(QKᵀ/sqrt(d_k)) with M for d_k: Vaswani et al. 2017
            return math.sqrt(M)
        case "heated-up":  # α = 16/sqrt(M) on BN'd features, unit-norm weights: Zhang et al. 2018
            return math.sqrt(M) / 16
        case "adacos-fixed":
            return from_scale(adacos_scale(K), M)
        case "normface-bound":
            return from_scale(normface_scale(K), M)
        case "mup-readout":  # relative to a base width: Yang et al. 2022
            return M / whole("base_features", base_features, least=1)
        case "ours-base" | "ours-csg" | "ours-cn" | "ours-csgcn":
            return temperature(M, K, csg, variant=name.removeprefix("ours-"))
    raise unknown("rule", name, LABELS)
