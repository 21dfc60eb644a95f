"""The paper's form with coefficients of ours: what is fitted, and that it is judged on data it has not seen."""

import math

import numpy as np
import pytest

from research.atlas_figures import too_hot
from research.left_out import fitted, left_out_rule
from research.regret import cases
from tests.planted import frame
from tstar.lab.curves import Curve

GRID = np.array([1.0, 2, 4, 8, 16, 32, 64])


def case(best, dataset="a", M=64, K=10):
    """A condition whose accuracy is highest at ``best``."""
    y = 0.9 - 0.05 * np.log(GRID / best) ** 2
    facts = dict(dataset=dataset, num_features=M, num_classes=K)
    return Curve(facts, GRID, (0,), y[None], y[None], np.ones((1, len(GRID)), bool))


def test_planted_coefficients_are_found():
    found = [case(0.5 * math.sqrt(M) + 2, M=M) for M in (16, 64, 256, 1024)]
    for theta, M in ((fitted("own base", found), M) for M in (64, 256)):
        assert theta[0] * math.sqrt(M) + theta[1] == pytest.approx(0.5 * math.sqrt(M) + 2, rel=0.2)


def test_the_data_set_is_really_left_out():
    """One data set is best at another T: it moves every fit but its own."""
    found = [case(4.0, name, M) for name in ("a", "a_96", "b") for M in (16, 256)]
    found += [case(32.0, "c", M) for M in (16, 256)]
    rule = left_out_rule("own base", found)
    assert rule(case(1.0, "c").facts) == pytest.approx(4.0, rel=0.1)
    assert rule(case(1.0, "a").facts) > 4.5


def test_too_hot_is_half_way_down_to_chance():
    runs = frame(lambda d, M: 4.0, datasets=("a",))
    runs["test_accuracy"] = [0.9 if T <= 16 else 0.1 for T in runs.temperature]
    assert too_hot(cases(runs)[0].curve()) == pytest.approx(math.sqrt(16 * 32))
    runs["test_accuracy"] = 0.9
    assert too_hot(cases(runs)[0].curve()) is None
