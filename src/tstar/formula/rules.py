r"""Closed-form, training-free temperatures from the literature, all on one axis.

With BatchNorm'd features ‖h‖ ≈ sqrt(M), and rows of the output layer of norm r, a cosine classifier
with scale s is a plain one at temperature

    T = r·sqrt(M)/s,

with r = 1/sqrt(3), the row norm at ``nn.Linear``'s default initialization. So every rule below is a
temperature, and they can be drawn beside the paper's formula.

Symbols: M ``num_features``, K ``num_classes``. Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tstar.errors import TstarError, unknown
from tstar.formula.equation import temperature
from tstar.numbers import number, positive, whole

ROW_NORM = 1 / math.sqrt(3)


def sqrt_m(num_features: int) -> float:
    """T = sqrt(M): attention's softmax(QKᵀ/sqrt(d_k)), with M for d_k (Vaswani et al. 2017, eq. 1)."""
    return math.sqrt(_features(num_features))


def heated_up(num_features: int) -> float:
    """T = sqrt(M)/16: heated-up softmax's α = 16/sqrt(M) on BN'd features and unit-norm weights.

    Reference: Zhang et al. 2018, "Heated-Up Softmax Embedding".
    """
    return math.sqrt(_features(num_features)) / 16


def adacos_scale(num_classes: int) -> float:
    """s = sqrt(2)·ln(K − 1), the fixed scale of AdaCos (Zhang et al. 2019). It is 0 at K = 2: refused."""
    if _classes(num_classes) < 3:
        raise TstarError(
            f"AdaCos' fixed scale sqrt(2)·ln(K − 1) needs K >= 3 classes, got {num_classes}, where it is 0; "
            "take normface-bound."
        )
    return math.sqrt(2) * math.log(num_classes - 1)


def normface_scale(num_classes: int, probability: float = 0.99) -> float:
    """s = (K−1)/K·ln((K−1)·P/(1−P)): the smallest scale at which cosine logits can reach probability P.

    Reference: Wang et al. 2018, "CosFace", the bound on s; Wang et al. 2017, "NormFace".
    """
    if not 0.5 < number("probability", probability) < 1:
        raise TstarError(f"0.5 < probability < 1 must hold, but got probability={probability!r}.")
    K = _classes(num_classes)
    return (K - 1) / K * math.log((K - 1) * probability / (1 - probability))


def from_scale(scale: float, num_features: int, row_norm: float = ROW_NORM) -> float:
    """T = r·sqrt(M)/s: the temperature that a cosine scale s amounts to."""
    return row_norm * math.sqrt(_features(num_features)) / positive("scale", scale)


def mup_readout(num_features: int, base_features: int, output_mult: float = 1.0) -> float:
    """T = (M/M_base)/output_mult: the readout of µP, relative to a base width (Yang et al. 2022)."""
    wider = _features(num_features) / whole("base_features", base_features, least=1)
    return wider / positive("output_mult", output_mult)


@dataclass(frozen=True)
class Rule:
    """A rule's temperature for one case, or the reason why it has none there."""

    name: str
    label: str
    temperature: float | None
    reason: str = ""


_LABELS = {
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


def names() -> list[str]:
    """The rules, in the order in which they are shown."""
    return [*_LABELS]


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
    if name not in _LABELS:
        raise unknown("rule", name, _LABELS)
    if name.startswith("ours-"):
        return temperature(num_features, num_classes, csg, variant=name.removeprefix("ours-"))

    def K() -> int:
        return _given(name, "num_classes", num_classes)

    compute: dict[str, Callable[[], float]] = {
        "default": lambda: 1.0,
        "sqrt-m": lambda: sqrt_m(num_features),
        "heated-up": lambda: heated_up(num_features),
        "adacos-fixed": lambda: from_scale(adacos_scale(K()), num_features),
        "normface-bound": lambda: from_scale(normface_scale(K()), num_features),
        "mup-readout": lambda: mup_readout(
            num_features, _given(name, "base_features", base_features)
        ),
    }
    return compute[name]()


def on_one_axis(
    num_features: int,
    num_classes: int | None = None,
    csg: float | None = None,
    *,
    base_features: int | None = None,
) -> tuple[Rule, ...]:
    """Every rule for one case, in one order; a rule that lacks a fact has the reason in place of a T."""
    _features(num_features)
    found = []
    for name, label in _LABELS.items():
        try:
            T = rule(name, num_features, num_classes, csg, base_features=base_features)
            found.append(Rule(name, label, T))
        except TstarError as error:
            found.append(Rule(name, label, None, str(error)))
    return tuple(found)


def _given(name: str, fact: str, value: int | None) -> int:
    if value is None:
        raise TstarError(f"{fact} must be given for the rule {name!r}; pass {fact}=….")
    return value


def _features(value: int) -> int:
    return whole("num_features", value, least=1)


def _classes(value: int) -> int:
    return whole("num_classes", value, least=2)
