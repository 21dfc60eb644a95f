"""Accuracy as a function of T for many curves at once: the paper's step (i)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tstar.curves.conditions import Average, Curve, peak
from tstar.curves.reading import Metric
from tstar.errors import unknown

Array = NDArray[np.float64]
Interpolation = Literal["T", "lnT"]


@dataclass(frozen=True)
class Lines:
    """Piecewise-linear curves of n conditions, on the union of all their grids.

    A piecewise-linear function stays itself on a finer grid, so one shared grid of nodes
    represents every curve exactly, and one search finds the segment of any number of temperatures.
    On segment s of condition c the curve is ``intercept[c, s] + slope[c, s]·x``, with x = T or ln T.
    Outside a condition's own grid its curve is constant. Several sets of curves on the same grids may be stacked.

    Attributes:
        nodes: the inner boundaries of the segments, in x, shape (S − 1,).
        intercept, slope: shape (n, S); stacked, (B, n, S).
        best: the highest node of each curve, shape (n,): the accuracy at the best grid T.
        best_temperature: that T, the lowest where several tie, shape (n,).
        interpolation: ``"T"`` or ``"lnT"``.
    """

    nodes: Array
    intercept: Array
    slope: Array
    best: Array
    best_temperature: Array
    interpolation: Interpolation

    def __len__(self) -> int:
        return len(self.best)

    def __call__(self, temperatures: Array) -> Array:
        """Accuracy at ``temperatures`` of shape (…, n), condition by condition; of stacked curves, (B, candidates, n)."""
        x = np.log(temperatures) if self.interpolation == "lnT" else temperatures
        *stack, n, segments = self.slope.shape
        # One flat index for both gathers: faster than a pair of index arrays.
        start = np.arange(self.slope.size // segments).reshape(*stack, *[1] * len(stack), n)
        flat = np.searchsorted(self.nodes, x) + start * segments
        values: Array = self.slope.take(flat) * x + self.intercept.take(flat)
        return values


def lines(
    curves: Sequence[Curve],
    metric: Metric,
    average: Average = "mean",
    interpolation: Interpolation = "lnT",
    observed: Sequence[Array] | None = None,
) -> Lines:
    """The lines through the mean (or median) accuracy at each temperature.

    ``observed`` replaces the averages, one array for each curve: the bootstrap draws its own.
    ``interpolation`` is in ln T as everywhere else, or in T as in the paper.
    """
    if interpolation not in ("T", "lnT"):
        raise unknown("interpolation", interpolation, ("T", "lnT"))
    values = [c.means(metric, average) for c in curves] if observed is None else list(observed)
    grids = [c.temperatures for c in curves]
    best = [curve.temperatures[peak(v)] for curve, v in zip(curves, values, strict=True)]
    if interpolation == "lnT":
        grids = [np.log(grid) for grid in grids]
    nodes = np.unique(np.concatenate(grids))
    at_nodes = np.stack(
        [np.interp(nodes, grid, value) for grid, value in zip(grids, values, strict=True)]
    )
    inner = np.diff(at_nodes, axis=1) / np.diff(nodes)
    flat = np.zeros((len(grids), 1))
    slope = np.hstack([flat, inner, flat])
    left = np.hstack([at_nodes[:, :1], at_nodes])
    at_left = np.concatenate([nodes[:1], nodes])
    return Lines(
        nodes=nodes,
        intercept=left - slope * at_left,
        slope=slope,
        best=np.array([v.max() for v in values]),
        best_temperature=np.array(best),
        interpolation=interpolation,
    )
