"""Do two accuracies differ by more than chance, on the samples and over the seeds that they were measured with?"""

from __future__ import annotations

import math
from statistics import NormalDist

FEW = 100  # samples of a test part below which a check says how little it can tell
_RISK = 0.05  # that chance alone is called a difference


def within_noise(
    a: float, b: float, samples: int, *, seeds_error: float = 0.0, pairs: int = 1
) -> bool:
    r"""Whether chance explains the difference of two accuracies, fractions of ``samples`` that are right.

    |a − b| ≤ z·sqrt(2·p·(1 − p)/n + s²) with p = (a + b)/2, the binomial error of two independent proportions under the
    hypothesis that they are equal, s the standard error of the difference over the seeds, and z = 1.96. Of several ``pairs`` that
    could have been chosen (the highest and the lowest of a row) z is higher, by Bonferroni. Two models are measured on the same
    samples and agree on many, so that this errs on the side of noise.
    """
    p = (a + b) / 2
    error = math.hypot(math.sqrt(2 * p * (1 - p) / max(samples, 1)), seeds_error)
    return abs(a - b) <= NormalDist().inv_cdf(1 - _RISK / 2 / pairs) * error + 1e-12


def may_be_noise(samples: int) -> float:
    """The largest difference of two accuracies, in points, that chance explains on so many samples: that at p = ½."""
    return 100 * min(1.0, NormalDist().inv_cdf(1 - _RISK / 2) * math.sqrt(0.5 / max(samples, 1)))
