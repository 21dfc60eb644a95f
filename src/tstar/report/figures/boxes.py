"""A box of a box plot, computed apart from its drawing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Box(NamedTuple):
    """Median, quartiles, whiskers (the last value within 1.5 quartile ranges), mean, and n."""

    median: float
    q1: float
    q3: float
    low: float
    high: float
    mean: float
    n: int

    def drawn(self, scale: float = 1.0) -> dict[str, Any]:
        """As matplotlib's ``Axes.bxp`` wants it."""
        return {
            "med": self.median * scale,
            "q1": self.q1 * scale,
            "q3": self.q3 * scale,
            "whislo": self.low * scale,
            "whishi": self.high * scale,
            "fliers": [],
        }


def box_of(values: ArrayLike) -> Box:
    """Tukey's box of some numbers."""
    x = np.asarray(values, dtype=float)
    q1, median, q3 = (float(q) for q in np.quantile(x, [0.25, 0.5, 0.75]))
    reach = 1.5 * (q3 - q1)
    return Box(
        median,
        q1,
        q3,
        float(x[x >= q1 - reach].min()),
        float(x[x <= q3 + reach].max()),
        float(x.mean()),
        x.size,
    )
