"""Paired tests and the critical-difference ranking, on an array of data sets × methods.

References: Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 2006
(Wilcoxon, Friedman with the F form of Iman and Davenport, Nemenyi); Holm 1979.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError
from tstar.imports import require

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Paired:
    """Differences of two methods over n pairs: how often, by how much, and how surely."""

    n: int
    wins: int
    ties: int
    losses: int
    mean: float
    median: float
    worst: float
    sign_p: float
    wilcoxon_p: float


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over the blocks (1 is best), Friedman's test, and Nemenyi's critical difference."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    chi2: float
    chi2_p: float
    f_p: float
    critical_difference: float

    def groups(self) -> list[tuple[str, ...]]:
        """The maximal sets of neighbors in rank whose ranks differ by less than the critical difference."""
        order = sorted(range(len(self.names)), key=lambda i: self.ranks[i])
        found: list[tuple[str, ...]] = []
        reach = -1
        for start in range(len(order)):
            end = start
            while (
                end + 1 < len(order)
                and self.ranks[order[end + 1]] - self.ranks[order[start]] < self.critical_difference
            ):
                end += 1
            if end > reach:
                found.append(tuple(self.names[i] for i in order[start : end + 1]))
                reach = end
        return found


def paired(differences: Sequence[float]) -> Paired:
    """Wins, ties and losses of the paired differences, with two-sided sign and Wilcoxon tests.

    Differences below 1e-9 are ties; both tests leave them out, as is usual.
    """
    values = np.asarray(differences, dtype=float)
    if values.size == 0 or not np.isfinite(values).all():
        raise TstarError(
            f"The differences must be finite numbers, at least one, got {differences!r}."
        )
    signs = np.where(np.abs(values) < 1e-9, 0, np.sign(values))
    wins, losses = int((signs > 0).sum()), int((signs < 0).sum())
    return Paired(
        n=values.size,
        wins=wins,
        ties=values.size - wins - losses,
        losses=losses,
        mean=float(values.mean()),
        median=float(np.median(values)),
        worst=float(values.min()),
        sign_p=_binomial_two_sided(wins, wins + losses),
        wilcoxon_p=signed_rank_p(values[signs != 0]),
    )


def signed_rank_p(values: Array) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, exact also with tied ranks.

    P(|W⁺ − E W⁺| ≥ |observed|) when each rank's sign is a fair coin; the distribution is built
    rank by rank on doubled mid-ranks, which are whole numbers.
    """
    if len(values) == 0:
        return 1.0
    doubled = np.rint(2 * require("scipy.stats", "lab").rankdata(np.abs(values).round(9))).astype(
        int
    )
    counts = np.zeros(int(doubled.sum()) + 1)
    counts[0] = 1.0
    for rank in doubled:
        counts[rank:] += counts[:-rank].copy()
    total = len(counts) - 1
    distance = np.abs(np.arange(total + 1) - total / 2)
    observed = abs(doubled[values > 0].sum() - total / 2)
    return float(counts[distance >= observed - 1e-9].sum() / counts.sum())


def ranking(scores: Array, names: Sequence[str], level: float = 0.05) -> Ranking:
    """Friedman's test over blocks (rows) and Nemenyi's critical difference between methods (columns).

    CD = q·sqrt(k(k + 1)/(6N)), q the studentised range at infinite degrees of freedom over sqrt 2.
    Higher scores are better; ties share the mean rank.
    """
    stats = require("scipy.stats", "lab")
    blocks, k = scores.shape
    if blocks < 2 or k < 3:
        raise TstarError(
            f"A ranking needs at least 2 data sets and 3 methods, got {blocks} and {k}."
        )
    ranks = stats.rankdata(-scores.round(9), axis=1).mean(axis=0)
    chi2, chi2_p = stats.friedmanchisquare(*scores.round(9).T)
    # Iman and Davenport: Friedman's χ² is conservative; this F form is not.
    rest = blocks * (k - 1) - chi2
    f = math.inf if rest <= 0 else (blocks - 1) * chi2 / rest
    q = stats.studentized_range.ppf(1 - level, k, np.inf) / math.sqrt(2)
    return Ranking(
        names=tuple(names),
        ranks=tuple(float(rank) for rank in ranks),
        blocks=blocks,
        chi2=float(chi2),
        chi2_p=float(chi2_p),
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (blocks - 1))),
        critical_difference=float(q * math.sqrt(k * (k + 1) / (6 * blocks))),
    )


def paired_variance_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of Pitman and Morgan's test that two paired samples have the same variance.

    The variances are equal exactly when sum and difference of the pair are uncorrelated.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return float(require("scipy.stats", "lab").pearsonr(a + b, a - b).pvalue)


def _binomial_two_sided(wins: int, n: int) -> float:
    """The sign test: twice the smaller tail of Binomial(n, ½), at most 1."""
    tail = sum(math.comb(n, i) for i in range(min(wins, n - wins) + 1))
    return min(1.0, float(2 * tail / 2**n))
