"""The closed form, against values worked out by hand and against its own algebra."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tstar
from tstar.formula.equation import explain, temperature
from tstar.formula.law import Budget

# By hand, from the paper's last coefficient table.
BY_HAND = [
    # ISIC: 0.3192·45.2548 + 20.74 + 3.746·1.348073 − 7.38·2.079442 = 14.44534 + 20.74 + 5.04988 − 15.34628
    (dict(num_features=2048, num_classes=8, csg=3.85), 24.88894),
    # 0.7239·22.627417 − 4.706
    (dict(num_features=512), 11.67399),
    # 0.4051·8 + 6.656 − 1.973·2.302585
    (dict(num_features=64, num_classes=10), 5.35380),
    # 0.4111·16 + 6.848 − 2.024·3.238678
    (dict(num_features=256, csg=25.50), 6.87052),
    # 0.3192·22.627417 + 20.74 + 3.746·4.485485 − 7.38·5.298317
    (dict(num_features=512, num_classes=200, csg=88.72), 5.66376),
]


@pytest.mark.parametrize(("inputs", "expected"), BY_HAND)
def test_values_by_hand(inputs, expected):
    assert temperature(**inputs) == pytest.approx(expected, abs=5e-4)


def test_isic_is_the_papers_number():
    assert temperature(2048, 8, 3.85) == pytest.approx(24.88, abs=0.01)


@pytest.mark.parametrize(
    ("inputs", "variant"),
    [
        (dict(), "base"),
        (dict(csg=3.0), "csg"),
        (dict(num_classes=10), "cn"),
        (dict(num_classes=10, csg=3.0), "csgcn"),
    ],
)
def test_without_the_training_and_the_scenario_it_is_the_papers_full_formula(inputs, variant):
    result = explain(256, **inputs)
    assert result.variant == variant
    assert temperature(256, **inputs) == temperature(256, **inputs, variant=variant)


def test_an_explicit_variant_ignores_what_it_does_not_use():
    assert temperature(256, 10, 3.0, variant="base") == temperature(256)
    assert temperature(256, 10, 3.0, variant="cn") == temperature(256, 10)


def test_the_clip_acts_at_both_bounds():
    low = explain(1, variant="base")  # 0.7239 − 4.706 < 1
    assert (low.temperature, low.clipped) == (1.0, "minimum")
    assert low.unclipped == pytest.approx(-3.9821)
    high = explain(10**6, variant="base")  # 723.9 − 4.7 > 512
    assert (high.temperature, high.clipped) == (512.0, "maximum")
    assert explain(256).clipped is None


def test_flags_have_two_levels():
    inside = explain(256, 100, 25.5)
    assert inside.flags == ()
    isic = explain(2048, 8, 3.85)
    assert {(f.quantity, f.level) for f in isic.flags} == {
        ("num_features", "validated"),
        ("num_classes", "validated"),
    }
    outside = explain(32, 1000, 0.1, variant="csgcn")
    assert {(f.quantity, f.level) for f in outside.flags} == {
        ("num_features", "extrapolation"),
        ("num_classes", "extrapolation"),
        ("csg", "extrapolation"),
    }
    assert explain(600).flags[0].level == "extrapolation"  # between 512 and 768: nobody has looked
    assert explain(256, 1000, variant="base").flags == ()  # K is not used, so it raises no flag


@given(
    st.integers(1, 10**7),
    st.integers(2, 10**6),
    st.floats(1e-6, 1e6),
    st.sampled_from(["base", "csg", "cn", "csgcn"]),
)
def test_terms_add_up_and_bounds_hold(M, K, csg, variant):
    result = explain(M, K, csg, variant=variant)
    assert math.isclose(
        sum(t.value for t in result.terms), result.unclipped, rel_tol=1e-12, abs_tol=1e-9
    )
    assert 1.0 <= result.temperature <= 512.0
    assert result.temperature == min(max(result.unclipped, 1.0), 512.0)


@given(st.integers(1, 10**6), st.integers(2, 1000), st.floats(0.01, 100))
def test_monotone_in_each_input(M, K, csg):
    assert temperature(M + 1) >= temperature(M)
    assert temperature(M, K + 1) <= temperature(M, K)
    both, alone = {"variant": "csgcn"}, {"variant": "csg"}
    assert temperature(M, K, csg * 2, **both) >= temperature(M, K, csg, **both)  # γ > 0 with cn …
    assert temperature(M, K, csg * 2, **alone) <= temperature(M, K, csg, **alone)  # … < 0 without


def test_a_fit_of_ones_own_drops_in(tmp_path):
    own = tstar.Coefficients("mine", alpha=2.0, beta=1.0, delta=0.5, minimum=0.1, maximum=9.0)
    own.save(tmp_path / "mine.json")
    expected = 2.0 * 2 + 1 + 0.5 * math.log(3)
    assert temperature(4, 3, coefficients=own) == pytest.approx(expected)
    assert temperature(4, 3, coefficients=tmp_path / "mine.json") == pytest.approx(expected)
    assert temperature(400, 3, coefficients=own) == 9.0
    with pytest.raises(tstar.TstarError, match="num_classes must be given"):
        temperature(4, coefficients=own)
    with pytest.raises(tstar.TstarError, match="must agree"):
        temperature(4, 3, variant="csg", coefficients=own)


@pytest.mark.parametrize(
    "bad",
    [
        *(
            0,
            -1,
            float("nan"),
            float("inf"),
            "64",
            None,
            True,
            [64],
            64.5,
            1 + 2j,
            10**400,
            10**5000,
        ),
        *(np.True_, np.array("64"), np.complex128(64), np.array([64]), torch.tensor(True)),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_bad_num_features(bad):
    with pytest.raises(tstar.TstarError, match="num_features must be"):
        temperature(bad)


@pytest.mark.parametrize("bad", [0, 1, -5, float("nan"), float("inf"), "ten", True, 2.5])
def test_bad_num_classes(bad):
    with pytest.raises(tstar.TstarError, match="num_classes must be"):
        temperature(64, bad)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), "hard", True])
def test_bad_csg(bad):
    with pytest.raises(tstar.TstarError, match="csg"):
        temperature(64, 10, bad)


def test_zero_csg_says_what_to_do():
    with pytest.raises(tstar.TstarError, match="leave csg out"):
        temperature(64, 10, 0.0, variant="csgcn")
    assert temperature(64, 10, 0.0) == temperature(64, 10)


def test_bad_names():
    with pytest.raises(tstar.TstarError, match="did you mean 'csgcn'"):
        temperature(64, variant="cgscn")
    with pytest.raises(tstar.TstarError, match="csg must be given"):
        temperature(64, variant="csg")
    with pytest.raises(tstar.TstarError, match="record or a path"):
        temperature(64, coefficients=3)


def test_numbers_of_other_libraries_are_numbers():
    assert temperature(np.int64(64), np.int32(10), np.float32(2.0)) == temperature(64, 10, 2.0)
    assert temperature(torch.tensor(64)) == temperature(64)


def test_an_absurd_learning_rate_still_gives_json():
    told = tstar.explain(259, 228, optimizer="sgd", lr=1e308, steps=2, batch_size=32).to_dict()
    json.dumps(told, allow_nan=False)


# T* = 2·sqrt(M) + 1: 9 for M = 16. SGD may go to sqrt(lr·steps·M/K), that is to 4·sqrt(lr·steps/K).
BOUND = tstar.Coefficients("mine", 2.0, 1.0, budget=Budget(1.0, 0.5, 0.25, {"sgd": (1, 50)}))
LAW = tstar.Coefficients(
    "law", 2.0, 1.0, budget=Budget(1.0, 3.0, 0.5, {"adam": (0.1, 1.0)}, power=0.5, maximum=8.0)
)


@pytest.mark.parametrize(
    ("steps", "T", "decides", "said"),
    [
        (400, 9.0, False, "= 17.89; T* is within it"),
        (40, 5.65685, True, "= 5.657, lower than T*: the budget sets T"),
    ],
)
def test_a_bound_on_t_by_hand(steps, T, decides, said):
    """K = 2, lr = 0.1: 4·sqrt(steps/20)."""
    found = explain(16, 2, coefficients=BOUND, optimizer="sgd", lr=0.1, steps=steps)
    assert found.bound == 9.0
    assert found.temperature == found.computed == pytest.approx(T, abs=1e-5)
    assert found.limit.value == pytest.approx(4 * math.sqrt(steps / 20))
    assert found.limit.decides is decides
    assert found.limit_text().startswith("allows at most c·sqrt(lr·steps·M/K) = 1·sqrt(")
    assert found.limit_text().endswith(said)


def test_a_bound_below_the_lowest_that_is_advised():
    found = explain(16, 2, coefficients=BOUND, optimizer="sgd", lr=1e-5, steps=40)
    assert (found.temperature, found.limit.decides) == (0.25, True)
    assert found.limit_text().endswith("= 0.05657, and 0.25 is the lowest that is advised")
    (flag,) = found.flags
    assert (flag.level, flag.quantity, flag.value) == (
        "extrapolation",
        "lr·steps",
        pytest.approx(4e-4),
    )
    assert flag.message.startswith("lr·steps = 0.0004 is below 1–50, where the bound was measured")
    inside = explain(16, 2, coefficients=BOUND, optimizer="sgd", lr=0.1, steps=40)
    assert inside.flags == ()
    beyond = explain(16, 2, coefficients=BOUND, optimizer="sgd", lr=1.0, steps=400)
    assert beyond.flags == ()  # longer than measured: there T* decides


@pytest.mark.parametrize(
    ("words", "T", "said"),
    [
        ({"lr": 0.1, "steps": 40}, 2.0, "= 2"),  # sqrt(1.6)·sqrt(40/(2·8·1))
        ({"lr": 0.1, "steps": 1000}, 8.0, "= 10; 8 is the highest that is advised"),
        ({"lr": 1e-4, "steps": 40}, 0.5, "= 0.06325; 0.5 is the lowest that is advised"),
    ],
)
def test_a_law_by_hand(words, T, said):
    found = explain(16, 2, coefficients=LAW, optimizer="sgd", momentum=0.0, batch_size=8, **words)
    assert found.temperature == pytest.approx(T)
    assert found.limit.decides
    assert found.limit_text().startswith("asks for c·sqrt(lr·M)")
    assert found.limit_text().endswith(said)


def test_adam_is_flagged_on_both_sides_of_what_was_measured():
    def flags(lr):
        found = explain(16, 2, coefficients=LAW, optimizer="adam", lr=lr, steps=100)
        assert found.temperature == 3.0
        return [flag.message.partition(",")[0] for flag in found.flags]

    assert flags(1e-5) == ["lr·steps = 0.001 is below 0.1–1"]
    assert flags(5e-3) == []
    assert flags(1.0) == ["lr·steps = 100 is above 0.1–1"]


def test_the_explanation_as_plain_types():
    found = explain(16, 2, coefficients=BOUND, optimizer="sgd", lr=0.1, steps=40)
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["temperature"], told["unclipped"], told["clipped"]) == (
        found.temperature,
        9.0,
        None,
    )
    assert (told["coefficients"], told["variant"]) == ("mine", "budget")
    assert [term["value"] for term in told["terms"]] == [8.0, 1.0]
    assert told["limit"] == vars(found.limit)
    how = {"optimizer": "sgd", "family": "sgd", "lr": 0.1, "steps": 40, "label_smoothing": 0.0}
    how["tuned"] = False
    assert told["training"] == how
    assert told["verdict"] == "Train at T = 5.657, with a BatchNorm before the output layer."
    assert "limit" not in explain(64).to_dict()
    assert explain(64).limit_text() == ""


def test_a_number_alone_needs_the_whole_training():
    with pytest.raises(tstar.TstarError, match=r"steps is missing; tstar\.explain says"):
        temperature(64, 10, lr=0.1, optimizer="sgd")
    with pytest.raises(tstar.TstarError, match="optimizer and steps are missing"):
        temperature(64, 10, lr=0.1)
    for words in ({"variant": "cn"}, {"coefficients": tstar.Coefficients("mine", 2.0, 1.0)}):
        assert temperature(64, 10, lr=0.1, **words) == temperature(64, 10, **words)
    assert temperature(64, 10, lr=0.1, optimizer="lion") == 1.0  # safe, whatever the steps


def test_coefficients_whose_sum_is_no_number_are_refused():
    huge = tstar.Coefficients("huge", 1e308, 1e308)
    with pytest.raises(tstar.TstarError, match="'huge' give inf; their numbers are too large"):
        temperature(10**6, coefficients=huge)


def test_the_ends_of_what_was_measured_are_measured():
    own = tstar.Coefficients(
        "mine",
        1.0,
        0.0,
        budget=Budget(0.5, 3.0, fitted={"adam": (0.125, 8.0)}, power=0.25, maximum=32.0),
    )

    def flagged(lr, steps):
        found = tstar.explain(64, 10, coefficients=own, optimizer="adam", lr=lr, steps=steps).flags
        return "lr·steps" in {flag.quantity for flag in found}

    spent = {0.125: (0.125, 1), 8.0: (0.125, 64)}
    assert not any(flagged(*how) for how in spent.values())
    assert flagged(0.1249, 1)
    assert flagged(0.12501, 64)


def test_json_keeps_the_papers_terms_apart_where_the_law_sets_t():
    how = {"optimizer": "sgd", "lr": 0.1, "steps": 500, "batch_size": 64}
    told = tstar.explain(64, 10, **how).to_dict()
    assert "terms" not in told
    assert sum(t["value"] for t in told["paper"]["terms"]) == pytest.approx(told["paper"]["unclipped"])  # fmt: skip
    paper = tstar.explain(64, 10, variant="cn", **how).to_dict()
    assert paper["terms"] == told["paper"]["terms"]


def test_a_product_that_is_not_the_users_says_how_it_was_counted():
    own = {"optimizer": "sgd", "lr": 0.1, "steps": 300, "batch_size": 32}
    (flag,) = (f for f in tstar.explain(64, 10, **own, momentum=0.9999).flags if f.quantity == "lr·steps")  # fmt: skip
    assert "lr·steps = 3e+04 (counted as with momentum 0.9" in flag.message
    (flag,) = (f for f in tstar.explain(64, 10, **{**own, "steps": 50_000}).flags if f.quantity == "lr·steps")  # fmt: skip
    assert "lr·steps = 5e+03 is above" in flag.message


@pytest.mark.parametrize("kind", [Fraction, Decimal, torch.tensor, np.array, np.float16])
def test_numbers_of_other_kinds_give_what_plain_ones_give(kind):
    assert explain(kind(64), kind(3)) == explain(64, 3)
