"""The objective, its bounds, and what it needs."""

import numpy as np
import pytest

from research.synthetic import planted_runs
from tests.fitting.planted import ONCE, QUICK, curve, tent
from tstar import TstarError
from tstar.curves import lines
from tstar.fitting import fit
from tstar.fitting.model import BOUNDS, coefficient_names, design_matrix, problem


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


def test_the_design_matrix_by_hand():
    made = [
        curve([0.1] * 3, num_features=16, csg=1.0, num_classes=10),
        curve([0.1] * 3, num_features=64, csg=np.e, num_classes=100),
    ]
    names = coefficient_names("csgcn")
    assert names == ("alpha", "beta", "gamma", "delta")
    wanted = [[4, 1, 0, np.log(10)], [8, 1, 1, np.log(100)]]
    np.testing.assert_allclose(design_matrix(made, names, check=False), wanted)
    wanted = [[np.log(16), 1, 0, np.log(10)], [np.log(64), 1, 1, np.log(100)]]
    np.testing.assert_allclose(design_matrix(made, names, "power", check=False), wanted)
    with pytest.raises(TstarError, match="alpha, beta, gamma, delta must be told apart by the 2"):
        design_matrix(made, names)


def test_the_names_of_the_coefficients():
    assert coefficient_names("none") == coefficient_names("base") == ("alpha", "beta")
    assert coefficient_names("csg") == ("alpha", "beta", "gamma")
    assert coefficient_names("cn") == ("alpha", "beta", "delta")
    with pytest.raises(TstarError, match="variant 'all'"):
        coefficient_names("all")


def test_the_temperature_is_clipped_and_a_power_law_is_an_exponential():
    task = tent()
    thetas = np.array([[2.0, 3.0], [-1.0, 0.0], [200.0, 0.0]])
    assert task.temperatures(thetas).tolist() == [[11.0], [1.0], [512.0]]
    narrow = tent(minimum=2.0, maximum=5.0)
    assert narrow.temperatures(thetas).tolist() == [[5.0], [2.0], [5.0]]
    power = tent(form="power")
    assert power.temperatures(np.array([0.5, np.log(2)])) == pytest.approx([2 * 16**0.5])
    assert power.temperatures(np.array([1e6, 0.0])) == pytest.approx([512.0])  # no overflow


def test_the_loss_is_the_weighted_mean_regret():
    task = tent()
    assert task.regret(np.array([2.0, 5.0])) == pytest.approx([0.08])  # T = 13
    assert float(task.loss(np.array([2.0, 3.0]))) == pytest.approx(0.0)
    made = [curve([0.5, 0.9, 0.5], num_features=16), curve([0.5, 0.9, 0.5], num_features=64)]
    curves = lines(made, "val", interpolation="T")
    theta = np.array([1.0, 7.0])  # T = 11 and 15
    for weights, wanted in ((None, 0.16 / 2), (np.array([3.0, 1.0]), 0.16 / 4)):
        both = problem(made, curves, "base", weights=weights)
        assert float(both.loss(theta)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "clip", [{"minimum": 3.0, "maximum": 2.0}, {"maximum": float("inf")}, {"minimum": -1.0}]
)
def test_a_clip_that_is_none_is_refused(clip):
    with pytest.raises(
        TstarError, match=r"0 < minimum <= maximum must hold|maximum must be finite"
    ):
        tent(**clip)
    assert tent(minimum=2.0, maximum=2.0).temperatures(np.zeros(2)).tolist() == [2.0]


def test_inputs_that_follow_each_other_are_named():
    made = [
        curve([0.1] * 3, num_features=m, csg=float(k), num_classes=k, dataset=f"{m} {k}")
        for m in (16, 64)
        for k in (10, 20, 40)
    ]
    with pytest.raises(TstarError, match=r"6 condition.*linear combinations of each other"):
        design_matrix(made, coefficient_names("csgcn"))
    assert design_matrix(made, coefficient_names("cn")).shape == (6, 3)
