"""The objective, its bounds, and what it needs."""

import numpy as np
import pytest

from tests.lab.fitting.planted import ONCE, curve, tent
from tstar import TstarError
from tstar.lab.curves import lines
from tstar.lab.fitting import fit
from tstar.lab.fitting.model import problem


def plain_loss(found, theta):
    """One candidate, one condition at a time."""
    alpha, beta, gamma, delta = theta
    total = 0.0
    for c in found:
        means = c.means("val")
        T = alpha * c.facts["num_features"] ** 0.5 + beta
        T += gamma * np.log(c.facts["csg"]) + delta * np.log(c.facts["num_classes"])
        T = min(max(T, 1.0), 512.0)
        total += max(means) - np.interp(np.log(T), np.log(c.temperatures), means)
    return total / len(found)


def test_a_population_is_its_candidates_one_by_one(found, task):
    candidates = np.random.default_rng(0).uniform(*task.bounds, (50, 4))
    wanted = [plain_loss(found, theta) for theta in candidates]
    np.testing.assert_allclose(task.loss(candidates), wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("variant", "column", "value"),
    [
        ("csg", "csg", np.nan),
        ("csg", "csg", 0.0),
        ("cn", "num_classes", np.nan),
        ("base", "num_features", np.nan),
    ],
)
def test_missing_quantities_are_named_where_needed(small, variant, column, value):
    spoilt = small.astype({column: float})
    spoilt.loc[spoilt["dataset"] == "task2", column] = value
    with pytest.raises(
        TstarError, match=rf"{column} > 0 must be known.*not in \d+ of 1\d.*\n.*task2"
    ):
        fit(spoilt, variant, **ONCE)
    if column != "num_features":
        assert fit(spoilt, "base", **ONCE).solution.success


@pytest.mark.parametrize(
    ("chosen", "variant", "message"),
    [
        ("num_classes == 10", "cn", "num_classes is 10 in all; add runs"),
        ("num_features == 64", "base", "num_features is 64 in all"),
    ],
)
def test_coefficients_that_cannot_be_told_apart(small, chosen, variant, message):
    with pytest.raises(TstarError, match=message):
        fit(small.query(chosen), variant, **ONCE)


def test_inputs_that_follow_each_other_are_named():
    made = [
        curve([0.1] * 3, num_features=m, csg=float(k), num_classes=k, dataset=f"{m} {k}")
        for m in (16, 64)
        for k in (10, 20, 40)
    ]
    with pytest.raises(TstarError, match=r"6 condition.*linear combinations of each other"):
        problem(made, lines(made, "val"), "csgcn")
    assert problem(made, lines(made, "val"), "cn").design.shape == (6, 3)


def test_the_temperature_is_clipped():
    thetas = np.array([[2.0, 3.0], [-1.0, 0.0], [200.0, 0.0]])
    assert tent().temperatures(thetas).tolist() == [[11.0], [1.0], [512.0]]
