r"""Small pictures that rule out most of what the sketches cannot, at a quarter of the reading.

Let s be the sum of four pixels (2×2), m = ⌊s/4⌋, and n the number of such sums. The s/2 are coefficients of
orthonormal directions, and s = 4m + f with 0 ≤ f ≤ 3. With r the length of what these directions leave of x − c,

    ‖x − q‖² ≥ max(2·‖m_x − m_q‖ − 3/2·√n, 0)² + (r_x − r_q)².

The m are bytes and their distances whole numbers, measured as those of the pictures themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.exact import Exact
from tstar.difficulty.neighbors.pairs import Pairs

_SAFE = 1 - 1e-9  # more than what a few roundings to float64 can add


class Thumbnails:
    """``exact`` measures the m of all rows; ``rests`` (N, 2) is what the length r lies between."""

    def __init__(self, exact: Exact, rests: NDArray[np.float64]) -> None:
        self.exact, self.rests = exact, rests

    def copy(self) -> Thumbnails:
        """Another one with its own working memory, for another thread."""
        return Thumbnails(self.exact.copy(), self.rests)

    def bounds(self, queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float64]:
        """What the squared distance of each pair cannot fall below."""
        reach = 2 * np.sqrt(self.exact.distances(queries, pairs).astype(np.float64))
        reach -= 1.5 * np.sqrt(self.exact.data.shape[1])
        np.maximum(reach, 0, out=reach)
        here, there = self.rests[pairs.rows], self.rests[queries][pairs.who]
        apart = np.maximum(here[:, 0] - there[:, 1], there[:, 0] - here[:, 1])
        np.maximum(apart, 0, out=apart)
        least: NDArray[np.float64] = (reach * reach + apart * apart) * _SAFE
        return least


def rest_between(
    squares: NDArray[np.float64], kept: NDArray[np.float64], coarse: float
) -> NDArray[np.float64]:
    """(n, 2): what √(squares − kept) lies between, if ``kept`` may be wrong by ``coarse`` times itself."""
    rest, doubt = squares - kept, coarse * kept + 1e-9 * squares
    both = np.column_stack([rest - doubt, rest + doubt])
    between: NDArray[np.float64] = np.sqrt(np.maximum(both, 0))
    return between
