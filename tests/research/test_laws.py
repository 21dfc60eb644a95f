"""Laws with free coefficients: what is fitted, and that it is judged on data it has not seen."""

import math

import numpy as np
import pytest

from research.laws.candidates import LAWS, limit, paper
from research.laws.fitting import Facts, Law, fit_law, leave_one_out, left_out_rule
from tstar.curves import Condition, Curve
from tstar.curves.resampling import clusters, data_sets
from tstar.errors import TstarError
from tstar.evidence import scores
from tstar.formula.equation import temperature

GRID = np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])


def case(best, dataset="a", M=64, K=10, lr=0.1, steps=800, optimizer="sgd", csg=2.0):
    """A condition whose accuracy is highest at ``best``."""
    y = 0.9 - 0.05 * np.log(GRID / best) ** 2
    facts = dict(
        dataset=dataset, num_features=M, num_classes=K, csg=csg, lr=lr, steps=steps, optimizer=optimizer,
    )  # fmt: skip
    return Curve(facts, GRID, (0,), y[None], y[None], np.ones((1, len(GRID)), bool))


def made(c=0.4, a=0.05):
    """Conditions that follow the theory's limit exactly, on four data sets."""
    found = []
    for dataset, K in (("a_32", 10), ("b", 20), ("c", 100), ("d", 40)):
        for M in (32, 128):
            for lr, steps in ((0.1, 200), (0.01, 800), (0.03, 800)):
                found.append(case(c * math.sqrt(lr * steps * M / K), dataset, M, K, lr, steps))
            for lr, steps in ((0.001, 800), (0.003, 800), (0.001, 3200)):
                found.append(case(a * lr * steps * M, dataset, M, K, lr, steps, "adamw"))
    return found


def test_the_coefficients_of_exact_data_are_found():
    assert np.exp(fit_law(LAWS["limit"], made())) == pytest.approx(
        [0.4, 0.05], rel=0.3
    )  # a grid of factors of two


def test_free_powers_find_the_theorys():
    theta = fit_law(LAWS["one power"], made())
    assert theta[2:] == pytest.approx([0.5, 1.0], abs=0.15)


def test_the_data_set_is_really_left_out():
    """One data set follows another c: it moves every fit but its own."""
    law = Law("c", "", ((-4.0, 2.0),), lambda theta, f: np.exp(theta[0]) * np.ones_like(f.M))
    found = [case(2.0, "a"), case(2.0, "a_96"), case(2.0, "b"), case(32.0, "c")]
    thetas = leave_one_out(law, found)
    assert math.exp(thetas[frozenset("c")][0]) == pytest.approx(2.0, rel=0.05)
    assert set(thetas) == {frozenset("a"), frozenset("b"), frozenset("c")}
    table = scores(
        [Condition(c.facts, (c,), {}) for c in found], {"c": left_out_rule(law, thetas)}
    ).set_index("dataset")
    assert table.loc["c", "temperature"] == pytest.approx(2.0, rel=0.05)


def test_joined_sets_share_their_data():
    assert data_sets({"dataset": "a_32+b_96"}) == {"a", "b"}
    law = Law("c", "", ((-4.0, 4.0),), lambda theta, f: np.exp(theta[0]) * np.ones_like(f.M))
    thetas = leave_one_out(law, [case(2.0, "a"), case(32.0, "a+b"), case(8.0, "c")])
    assert math.exp(thetas[frozenset("a")][0]) == pytest.approx(8.0, rel=0.05)


def test_clusters_join_what_shares_data():
    found = clusters(["a_32", "b", "c", "a_96", "b+c", "d"])
    assert [list(places) for places in found] == [[0, 3], [1, 2, 4], [5]]


def test_the_papers_part_is_the_formulas():
    f = Facts.of([case(1, M=64, K=10).facts, case(1, M=512, K=100, csg=0.0).facts])
    assert paper("cn", f) == pytest.approx([temperature(64, 10), temperature(512, 100)])
    assert paper("base", f) == pytest.approx([temperature(64), temperature(512)])
    # Without a csg the class count alone corrects.
    assert paper("csgcn", f) == pytest.approx([temperature(64, 10, 2.0), temperature(512, 100)])


def test_the_limit_is_the_packages():
    from tstar.formula.law import Budget
    from tstar.formula.law import limit as one
    from tstar.formula.training import Training

    many = [case(1).facts, case(1, lr=0.001, optimizer="adamw").facts]
    expected = [
        one(Budget(0.3, 0.02), 64, 10, Training("sgd", 0.1, 800))[0],
        one(Budget(0.3, 0.02), 64, 10, Training("adam", 0.001, 800))[0],
    ]
    assert limit((math.log(0.3), math.log(0.02)), Facts.of(many)) == pytest.approx(expected)


@pytest.mark.parametrize("name", LAWS)
def test_every_law_gives_temperatures_one_at_a_time_and_many_at_once(name):
    law = LAWS[name]
    facts = Facts.of([c.facts for c in made()[:4]])
    middle = np.array([(low + high) / 2 for low, high in law.bounds])
    T = law.temperature(middle, facts)
    assert T.shape == (4,)
    assert ((T >= 0.25) & (T <= 512)).all()
    if len(middle):
        many = law.temperature(np.repeat(middle[:, None, None], 3, axis=1), facts)
        assert many.shape == (3, 4)
        assert many[1] == pytest.approx(T)


def test_nothing_to_fit_on():
    with pytest.raises(TstarError, match="no conditions to fit"):
        fit_law(LAWS["limit"], [])
