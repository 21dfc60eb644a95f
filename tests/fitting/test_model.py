"""The objective, its bounds, and what it needs."""

import numpy as np
import pytest

from research.synthetic import planted_runs
from tests.fitting.planted import ONCE, QUICK
from tstar import TstarError
from tstar.fitting import fit
from tstar.fitting.model import BOUNDS


def test_the_clip_and_the_bounds_belong_to_the_set():
    runs = planted_runs("base")
    result = fit(runs, "none", minimum=0.5, maximum=10.0, bounds={"beta": (0, 3)}, **QUICK)
    assert (result.coefficients.minimum, result.coefficients.maximum) == (0.5, 10.0)
    assert 0 <= result.coefficients.beta <= 3
    assert result.conditions["temperature"].max() <= 10.0
    assert any("bound of the search" in flag for flag in result.flags)


def plain_loss(found, theta):
    """One candidate, one condition at a time."""
    alpha, beta, gamma, delta = theta
    total = 0.0
    for c in found:
        means = c.means("val")
        T = alpha * c.facts["num_features"] ** 0.5 + beta
        T += gamma * np.log(c.facts["csg"]) + delta * np.log(c.facts["num_classes"])
        total += max(means) - np.interp(
            np.log(min(max(T, 1.0), 512.0)), np.log(c.temperatures), means
        )
    return total / len(found)


def test_a_population_is_its_candidates_one_by_one(found, task):
    low, high = np.array([BOUNDS[name] for name in task.names]).T
    candidates = np.random.default_rng(0).uniform(low, high, (50, 4))
    wanted = [plain_loss(found, theta) for theta in candidates]
    np.testing.assert_allclose(task.loss(candidates), wanted, atol=1e-12)
    np.testing.assert_allclose(task.columns(candidates.T), wanted, atol=1e-12)
    assert task.columns(candidates[0]) == pytest.approx(wanted[0])


@pytest.mark.parametrize(
    ("correction", "column"), [("csg", "csg"), ("cn", "num_classes"), ("none", "num_features")]
)
def test_missing_quantities_are_named_where_needed(small, correction, column):
    spoilt = small.astype({column: float})
    spoilt.loc[spoilt["dataset"] == "task2", column] = np.nan
    with pytest.raises(
        TstarError, match=rf"{column} must be known.*missing in \d+ of 1\d.*\n.*task2"
    ):
        fit(spoilt, correction, **ONCE)
    if column != "num_features":
        assert fit(spoilt, "none", **ONCE).success


def test_a_csg_of_zero_is_named(small):
    small.loc[small["dataset"] == "task3", "csg"] = 0.0
    with pytest.raises(TstarError, match=r"csg > 0 must hold.*\n.*task3"):
        fit(small, "csg", **ONCE)


def test_coefficients_that_cannot_be_told_apart(small):
    with pytest.raises(TstarError, match=r"num_classes is 10 in all; add runs"):
        fit(small.query("num_classes == 10"), "cn", **ONCE)
    with pytest.raises(TstarError, match=r"num_features is 64 in all"):
        fit(small.query("num_features == 64"), "none", **ONCE)
