"""How sure a difference is: paired over seeds, and over the samples that it was measured on.

The bootstrap over conditions is :func:`tstar.lab.curves.resampling.estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

import numpy as np

from tstar.imports import require


@dataclass(frozen=True)
class Paired:
    """The mean of paired differences.

    ``low`` and ``high`` bound the mean with 95 % confidence (Student's t). ``p_t`` is the paired
    t-test's, ``p_holm`` the same after Holm's correction for the number of methods tested. They
    are ``None`` if n is too small to say.
    """

    n: int
    difference: float
    low: float | None = None
    high: float | None = None
    p_t: float | None = None
    p_holm: float | None = None

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` at 5 % after Holm and n >= 3, else ``"no evidence"``."""
        if self.n < 3 or self.p_holm is None or self.p_holm >= 0.05:
            return "no evidence"
        return "better" if self.difference > 0 else "worse"


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """``first`` − ``second``, pair by pair: mean, 95 % interval and paired t-test."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n, mean, error = len(differences), fmean(differences), standard_error(differences)
    if n < 2:
        return Paired(n, mean)
    if error <= 1e-12 * max(1.0, abs(mean)):
        # Every pair differs by the same amount: no noise to test against, and t is 0/0 or infinite.
        return Paired(n, mean, mean, mean, 1.0 if abs(mean) <= 1e-12 else None)
    stats = require("scipy.stats", "lab")
    half = float(stats.t.ppf(0.975, n - 1)) * error
    p_t = float(stats.ttest_rel(first, second).pvalue)
    return Paired(n, mean, mean - half, mean + half, p_t)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p_(i)·(m − i), made increasing, at most 1."""
    adjusted, highest = {}, 0.0
    for i, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(p_values) - i)))
        adjusted[name] = highest
    return adjusted


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean, from the sample's deviation; 0 for a single value."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def noise(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    r"""The largest difference of two accuracies that chance explains, at 95 %.

    1.96·sqrt(e² + s²), e the standard error of the difference over the test samples (averaged
    over the seeds), s that over the seeds (averaged over the samples).

    Args:
        first: for each seed how right each test sample is, 0 or 1 (or 1/K for a guess).
        second: the same of the other model, for the same seeds and samples.
    """
    gaps = np.asarray(first, float) - np.asarray(second, float)
    errors = [standard_error(gaps.mean(axis=axis).tolist()) for axis in (0, 1)]
    return NormalDist().inv_cdf(0.975) * math.hypot(*errors)
