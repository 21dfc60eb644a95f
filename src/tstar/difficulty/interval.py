"""How sure the value is: a bootstrap of the drawn samples, or the spread over several draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.expectation import expectation
from tstar.difficulty.gradient import cumulative_gradient
from tstar.difficulty.laplacian import laplacian
from tstar.difficulty.similarity import similarity

COVERAGE = 0.95
_RESAMPLES = 200
_MANY_CLASSES, _FEW_RESAMPLES = 256, 50  # where the spectra would take longer than the neighbors


def bootstrap(
    value: float,
    neighbor_codes: NDArray[np.int64],
    owners: NDArray[np.int64],
    weights: NDArray[np.float64],
    num_classes: int,
    seed: int,
) -> tuple[float, float]:
    """A 95 % interval around ``value`` from resampling each class's drawn samples.

    Resampling makes rows of S noisier and so lowers csg a little; what is used is the spread of the
    resampled values around their own mean, moved to ``value``. No neighbor is searched again.
    """
    rng = np.random.default_rng((seed, 0xB007))
    even = [np.full(n, 1 / n) for n in np.bincount(owners, minlength=num_classes)]
    draws = np.empty(_RESAMPLES if num_classes <= _MANY_CLASSES else _FEW_RESAMPLES)
    for i in range(len(draws)):
        counts = np.concatenate([rng.multinomial(len(p), p) for p in even])
        S = expectation(neighbor_codes, owners, weights * counts, num_classes)
        spectrum = np.linalg.eigvalsh(laplacian(similarity(S))).astype(np.float64)
        draws[i] = cumulative_gradient(spectrum)
    low, high = np.quantile(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]) - draws.mean()
    return _within(value + low, value + high, num_classes)


def over_draws(values: NDArray[np.float64], num_classes: int) -> tuple[float, float]:
    """mean ± t·s of several draws: where 95 % of single draws fall, t of Student with n − 1."""
    reach = _student(len(values) - 1) * float(values.std(ddof=1))
    return _within(float(values.mean()) - reach, float(values.mean()) + reach, num_classes)


def _within(low: float, high: float, num_classes: int) -> tuple[float, float]:
    """csg lies between 0 and K − 1."""
    return max(low, 0.0), min(high, num_classes - 1.0)


def _student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t (tabled; its normal limit with a correction beyond)."""
    table = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    return (
        table[degrees - 1] if degrees <= len(table) else 1.96 + 2.372 / degrees + 2.82 / degrees**2
    )
