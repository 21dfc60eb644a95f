"""Accuracy as a function of T for many curves at once: the paper's step (i)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tstar.errors import unknown
from tstar.lab.curves.conditions import Curve
from tstar.lab.curves.reading import Metric

Array = NDArray[np.float64]
Interpolation = Literal["T", "lnT"]


@dataclass(frozen=True)
class Lines:
    """Piecewise-linear curves of n conditions, on the union of all their grids.

    A piecewise-linear function stays itself on a finer grid, so one grid of nodes represents every
    curve exactly. On segment s of condition c the curve is ``intercept[c, s] + slope[c, s]·x``,
    with x = T or ln T; outside a condition's own grid it is constant.

    Attributes:
        nodes: the inner boundaries of the segments, in x, shape (S − 1,).
        intercept, slope: shape (n, S).
        best: the accuracy at the best grid T of each curve, shape (n,).
        interpolation: ``"T"`` or ``"lnT"``.
    """

    nodes: Array
    intercept: Array
    slope: Array
    best: Array
    interpolation: Interpolation

    def __call__(self, temperatures: Array) -> Array:
        """Accuracy at ``temperatures`` (…, n), condition by condition."""
        x = np.log(temperatures) if self.interpolation == "lnT" else temperatures
        n, segments = self.slope.shape
        # One flat index for both gathers: faster than a pair of index arrays.
        flat = np.searchsorted(self.nodes, x) + np.arange(n) * segments
        values: Array = self.slope.take(flat) * x + self.intercept.take(flat)
        return values


def lines(curves: Sequence[Curve], metric: Metric, interpolation: Interpolation = "lnT") -> Lines:
    """The lines through the average accuracy at each temperature."""
    if interpolation not in ("T", "lnT"):
        raise unknown("interpolation", interpolation, ("T", "lnT"))
    values = [c.means(metric) for c in curves]
    grids = [np.log(c.temperatures) if interpolation == "lnT" else c.temperatures for c in curves]
    nodes = np.unique(np.concatenate(grids))
    heights = np.stack([np.interp(nodes, *curve) for curve in zip(grids, values, strict=True)])
    flat = np.zeros((len(grids), 1))
    slope = np.hstack([flat, np.diff(heights, axis=1) / np.diff(nodes), flat])
    left = np.hstack([heights[:, :1], heights])
    intercept = left - slope * np.concatenate([nodes[:1], nodes])
    best = np.array([v.max() for v in values])
    return Lines(nodes, intercept, slope, best, interpolation)
