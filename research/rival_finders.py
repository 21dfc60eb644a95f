"""Lightning's learning-rate finder as it was up to version 2.5.2: the steepest fall from step to step.

Since then it takes the slope over the rate itself; its rates are spaced evenly in their logarithm, so that the slope is steepest
at rates of 1e-7 (its issue 21141). What a user has depends on the version.
"""

from __future__ import annotations

import numpy as np

from research.rival_parts import _finder, lightning_rates


def steepest_step(lrs: list[float], losses: list[float]) -> int:
    """The place of the most negative difference, ten skipped at the start and one at the end."""
    found = np.array(losses[10:-1])
    return 10 + int(np.gradient(found).argmin()) if len(found) > 1 else 0


by_step_finder = _finder(lightning_rates, steepest_step)
