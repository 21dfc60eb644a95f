"""Temperature check: train at several inverse temperatures, keep the best on validation data."""

from __future__ import annotations

import math

from torch import nn

from tstar.errors import TstarError, whole
from tstar.lab.methods.closed_forms import fixed
from tstar.lab.recipe import Method, Recipe, Setting


def temperature_check(
    model: nn.Module,
    setting: Setting,
    *,
    points: int = 7,
    lowest: float = 1e-2,
    highest: float = 1e1,
) -> Recipe:
    r"""L = CE(β·z, y), β = 1/T fixed in training; the β of best validation accuracy is kept.

    Each of the ``points``, log-spaced over β = ``lowest`` … ``highest``, is a training run,
    which is the method's cost.

    Reference: Agarwala et al. 2020, "Temperature check" (S); spacing and seven points are ours.
    """
    raise TstarError(
        f"Method 'temperature-check' is a search of {points} training runs, not one run; prepare "
        "its candidates, or tstar.lab.methods.get('fixed', temperature=T)."
    )


def candidates(*, points: int, lowest: float, highest: float) -> tuple[Method, ...]:
    """The methods that are trained for it: a fixed T = 1/β for each point."""
    if lowest >= highest:
        raise TstarError("lowest < highest must hold for β; swap them.")
    steps, low, high = whole("points", points, least=2) - 1, math.log(lowest), math.log(highest)
    found = (math.exp(-(low + (high - low) / steps * i)) for i in range(points))
    return tuple(Method("fixed", fixed, options={"temperature": T}) for T in found)
