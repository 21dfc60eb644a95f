"""Standard errors of a mean when conditions share data sets and families of networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t


def error(values: pd.Series, *clusters: pd.Series) -> float:
    """The two-way clustered standard error of a mean (Cameron, Gelbach & Miller 2011): V₁ + V₂ − V₁₂.

    Each V sums the residuals over a cluster before squaring, with the small-sample factor G/(G − 1). Never below the
    error of independent conditions.
    """
    residuals = values - values.mean()
    n = len(values)
    independent = residuals.std(ddof=1) / np.sqrt(n)
    if len(clusters) == 1:
        return max(float(independent), _one(residuals, clusters[0]))
    both = clusters[0].astype(str) + " " + clusters[1].astype(str)
    first, second = (_one(residuals, cluster) for cluster in clusters)
    square = first**2 + second**2 - _one(residuals, both) ** 2
    return float(np.sqrt(max(square, independent**2)))


def _one(residuals: pd.Series, cluster: pd.Series) -> float:
    sums = residuals.groupby(cluster.to_numpy()).sum()
    groups = len(sums)
    if groups < 2:
        return 0.0
    return float(np.sqrt((sums**2).sum() * groups / (groups - 1)) / len(residuals))


FEWEST = 5  # clusters; with fewer an error by them says nothing, and conditions count as independent in that direction


def interval(values: pd.Series, *clusters: pd.Series) -> tuple[float, float, float]:
    """Mean and 95 % interval, Student's t with the fewest clusters less one degrees of freedom."""
    each = pd.Series(range(len(values)), index=values.index)
    usable = [cluster for cluster in clusters if cluster.nunique() >= FEWEST] or [each]
    degrees = max(1, min(cluster.nunique() for cluster in usable) - 1)
    half = t.ppf(0.975, degrees) * error(values, *usable)
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)
