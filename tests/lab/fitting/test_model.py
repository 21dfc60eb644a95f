"""The objective, its bounds, and what it needs."""

import numpy as np
import pytest

from tests.lab.fitting.planted import ONCE, curve, tent
from tstar import TstarError
from tstar.lab.curves import lines
from tstar.lab.fitting import fit
from tstar.lab.fitting.model import coefficient_names, problem


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
    candidates = np.random.default_rng(0).uniform(*task.bounds, (50, 4))
    wanted = [plain_loss(found, theta) for theta in candidates]
    np.testing.assert_allclose(task.loss(candidates), wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("correction", "column"), [("csg", "csg"), ("cn", "num_classes"), ("base", "num_features")]
)
def test_missing_quantities_are_named_where_needed(small, correction, column):
    spoilt = small.astype({column: float})
    spoilt.loc[spoilt["dataset"] == "task2", column] = np.nan
    with pytest.raises(
        TstarError, match=rf"{column} > 0 must be known.*not in \d+ of 1\d.*\n.*task2"
    ):
        fit(spoilt, correction, **ONCE)
    if column != "num_features":
        assert fit(spoilt, "base", **ONCE).solution.success


def test_a_csg_of_zero_is_named(small):
    small.loc[small["dataset"] == "task3", "csg"] = 0.0
    with pytest.raises(TstarError, match=r"csg > 0 must be known.*\n.*task3"):
        fit(small, "csg", **ONCE)


def test_coefficients_that_cannot_be_told_apart(small):
    with pytest.raises(TstarError, match=r"num_classes is 10 in all; add runs"):
        fit(small.query("num_classes == 10"), "cn", **ONCE)
    with pytest.raises(TstarError, match=r"num_features is 64 in all"):
        fit(small.query("num_features == 64"), "base", **ONCE)


def test_the_design_matrix_by_hand():
    made = [
        curve([0.1] * 3, num_features=16, csg=1.0, num_classes=10),
        curve([0.1] * 3, num_features=64, csg=np.e, num_classes=100),
    ]
    lined = lines(made, "val")
    wanted = [[4, 1, 0, np.log(10)], [8, 1, 1, np.log(100)]]
    np.testing.assert_allclose(problem(made, lined, "csgcn", check=False).design, wanted)
    with pytest.raises(TstarError, match="alpha, beta, gamma, delta must be told apart by the 2"):
        problem(made, lined, "csgcn")


def test_the_names_of_the_coefficients():
    assert coefficient_names("base") == ("alpha", "beta")
    assert coefficient_names("csg") == ("alpha", "beta", "gamma")
    assert coefficient_names("cn") == ("alpha", "beta", "delta")
    with pytest.raises(TstarError, match="variant 'all'"):
        coefficient_names("all")


def test_the_temperature_is_clipped():
    task = tent()
    thetas = np.array([[2.0, 3.0], [-1.0, 0.0], [200.0, 0.0]])
    assert task.temperatures(thetas).tolist() == [[11.0], [1.0], [512.0]]


def test_the_loss_is_the_mean_regret():
    task = tent()
    assert task.regret(np.array([2.0, 5.0])) == pytest.approx([0.08])  # T = 13
    assert float(task.loss(np.array([2.0, 3.0]))) == pytest.approx(0.0)
    made = [curve([0.5, 0.9, 0.5], num_features=16), curve([0.5, 0.9, 0.5], num_features=64)]
    curves = lines(made, "val", interpolation="T")
    theta = np.array([1.0, 7.0])  # T = 11 and 15
    both = problem(made, curves, "base")
    assert float(both.loss(theta)) == pytest.approx(0.16 / 2)


def test_inputs_that_follow_each_other_are_named():
    made = [
        curve([0.1] * 3, num_features=m, csg=float(k), num_classes=k, dataset=f"{m} {k}")
        for m in (16, 64)
        for k in (10, 20, 40)
    ]
    with pytest.raises(TstarError, match=r"6 condition.*linear combinations of each other"):
        problem(made, lines(made, "val"), "csgcn")
    assert problem(made, lines(made, "val"), "cn").design.shape == (6, 3)
