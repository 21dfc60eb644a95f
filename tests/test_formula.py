"""The closed form, against values worked out by hand and against its own algebra."""

import json
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tstar import Coefficients, TstarError
from tstar.formula import Provenance, choose_variant, explain, get, published, temperature

# By hand, from the paper's last coefficient table.
BY_HAND = [
    # ISIC: 0.3192·45.2548 + 20.74 + 3.746·1.348073 − 7.38·2.079442
    (dict(num_features=2048, num_classes=8, csg=3.85), 24.88894),
    (dict(num_features=512), 11.67399),  # 0.7239·22.627417 − 4.706
    (dict(num_features=64, num_classes=10), 5.35380),  # 0.4051·8 + 6.656 − 1.973·2.302585
    (dict(num_features=256, csg=25.50), 6.87052),  # 0.4111·16 + 6.848 − 2.024·3.238678
    # 0.3192·22.627417 + 20.74 + 3.746·4.485485 − 7.38·5.298317
    (dict(num_features=512, num_classes=200, csg=88.72), 5.66376),
]


@pytest.mark.parametrize(("inputs", "expected"), BY_HAND)
def test_values_by_hand(inputs, expected):
    assert temperature(**inputs) == pytest.approx(expected, abs=5e-4)


def test_provenance_says_what_was_fitted_and_what_only_validated():
    origin = get("csgcn").provenance
    names = ("num_features", "num_classes", "csg")
    assert [origin.fitted[name] for name in names] == [[64, 512], [10, 200], [1.53, 88.72]]
    assert [origin.validated[name] for name in names] == [[768, 2048], [8, 200], [1.39, 75.32]]
    tried = [[(64, 512), (768, 2048)], [(8, 200)], [(1.39, 88.72)]]  # those that overlap are one
    assert [origin.ranges(name) for name in names] == tried
    paper = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "epochs": 200, "batch_size": 128}
    assert {name: origin.training[name] for name in paper} == paper


def test_the_clip_acts_at_both_bounds():
    low, high = explain(1, variant="base"), explain(10**6, variant="base")
    assert (low.temperature, high.temperature) == (1.0, 512.0)
    assert low.unclipped == pytest.approx(-3.9821)
    assert any("clipped to 1" in note for note in low.notes)
    assert not any("clipped" in note for note in explain(256).notes)


def test_what_was_never_tried_is_noted():
    assert explain(256, 100, 25.5).notes == explain(2048, 8, 3.85).notes == ()
    outside = explain(32, 1000, 0.1).notes
    assert [note.split()[0] for note in outside] == ["M", "K", "csg", "The"]  # the clip
    assert len(explain(600).notes) == 1  # between 512 and 768: nobody has looked
    assert explain(256, 1000, variant="base").notes == ()  # K is not used


@given(
    st.integers(1, 10**7),
    st.integers(2, 10**6),
    st.floats(1e-6, 1e6),
    st.sampled_from(["base", "csg", "cn", "csgcn"]),
)
def test_terms_add_up_and_bounds_hold(M, K, csg, variant):
    result = explain(M, K, csg, variant=variant)
    total = sum(t.value for t in result.terms)
    assert math.isclose(total, result.unclipped, rel_tol=1e-12, abs_tol=1e-9)
    assert result.temperature == min(max(result.unclipped, 1.0), 512.0)


@given(st.integers(1, 10**6), st.integers(2, 1000), st.floats(0.01, 100))
def test_monotone_in_each_input(M, K, csg):
    assert temperature(M + 1) >= temperature(M)
    assert temperature(M, K + 1) <= temperature(M, K)
    both, alone = {"variant": "csgcn"}, {"variant": "csg"}
    assert temperature(M, K, csg * 2, **both) >= temperature(M, K, csg, **both)  # γ > 0 with cn …
    assert temperature(M, K, csg * 2, **alone) <= temperature(M, K, csg, **alone)  # … < 0 without


def test_every_term_whose_input_is_known_is_used():
    found = {choose_variant(K, csg) for K in (False, True) for csg in (False, True)}
    assert found == {*published()}
    for K, csg, variant in ((None, None, "base"), (None, 5, "csg"), (10, None, "cn")):
        assert explain(64, K, csg).variant == variant
    assert explain(64, 10, 5).variant == "csgcn"


def test_a_model_answers_for_its_own_width_and_classes():
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    assert temperature(model) == temperature(64, 10)
    assert temperature(model, csg=5.0) == temperature(64, 10, 5.0)
    assert temperature(model, variant="base") == temperature(64)
    assert temperature(model, num_classes=100) == temperature(64, 100)


def test_a_fit_of_ones_own_drops_in(tmp_path):
    own = Coefficients("mine", alpha=2.0, beta=1.0, delta=0.5, minimum=0.1, maximum=9.0)
    own.save(tmp_path / "mine.json")
    expected = 2.0 * 2 + 1 + 0.5 * math.log(3)
    assert temperature(4, 3, coefficients=own) == pytest.approx(expected)
    assert temperature(4, 3, coefficients=tmp_path / "mine.json") == pytest.approx(expected)
    assert temperature(400, 3, coefficients=own) == 9.0
    for words, message in (
        (dict(num_features=4, coefficients=own), "num_classes must be given"),
        (dict(num_features=4, coefficients=3), "Coefficients record"),
        (dict(num_features=4, variant="cm"), "did you mean 'cn'"),
        (dict(num_features=4, num_classes=3, csg=0), "leave csg out"),
    ):
        with pytest.raises(TstarError, match=message):
            temperature(**words)


def test_round_trip(tmp_path):
    scope = {"num_features": [32, 64], "note": "two widths"}
    origin = Provenance("my sweep", fitted=scope, training={"optimizer": "adamw"})
    own = Coefficients("mine", 0.5, -1.0, gamma=2.0, minimum=0.25, provenance=origin)
    for each in (own, *published().values()):
        each.save(tmp_path / "c.json")
        assert Coefficients.load(tmp_path / "c.json") == each


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "x", "alpha": 1}', "missing .* 'beta'"),
        ('{"name": "x", "alpha": "1", "beta": 0}', "alpha must be a number"),
        ('{"name": "x", "alpha": 1, "beta": 0, "gama": 2}', "argument 'gama'"),
        ('{"name": "x", "alpha": 1, "beta": 0, "minimum": 5, "maximum": 2}', "minimum <= maximum"),
        ('{"name": "x", "alpha": 1, "beta": 0, "format": 99}', "format 99"),
        (
            '{"name": "x", "alpha": 1, "beta": 0, "provenance": {"fitted": {"csg": 3}}}',
            "as Coefficients.save",
        ),
        ('{"name": "x", "alpha": 1, "beta": 0, "provenance": "paper"}', "as Coefficients.save"),
        (
            '{"name": "x", "alpha": 1, "beta": 0, "provenance": {"fitted": []}}',
            "as Coefficients.save",
        ),
        ("[]", "one JSON object"),
    ],
)
def test_files_that_hold_no_set(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match=message):
        Coefficients.load(path)
    with pytest.raises(TstarError, match="must be a path"):
        Coefficients.load(3)


def test_it_shows_itself():
    found = explain(64, 10, variant="cn")
    assert repr(found) == "Explanation(T=5.354, variant='cn')"
    assert "α·sqrt(M)" in str(found)
    assert str(found).splitlines() == found.__rich__().plain.splitlines()
    assert "<b" not in explain(64, coefficients=Coefficients("<b>", 1.0, 0.0))._repr_html_()
    assert float(found) == found.temperature


VALUES = [
    *(None, True, 0, -1, 1.5, math.nan, math.inf, 10**400, 10**5000, 1e308, 5e-324, 64, 10, 0.1, 1j),
    *("x", "", b"x", "sgd", "adamw", "lion", "cosine", "finetune", [], {}, object(), lambda: 0),
    *(("sgd",), ("sgd", "x"), ("adam", 1e-3), np.float32(0.1), np.True_, np.array("64")),
    *(np.array([1, 2]), np.datetime64("2020"), torch.tensor(True), torch.tensor([1.0, 2.0])),
]  # fmt: skip
NAMES = ("num_features", "num_classes", "csg", "variant", "coefficients")


@pytest.mark.parametrize("seed", range(2))
def test_no_other_error_and_no_number_outside_the_bounds(seed):
    rng, answered = random.Random(seed), 0
    for _ in range(1000):
        words = {"num_features": 64, "num_classes": 10}
        words |= {name: rng.choice(VALUES) for name in rng.sample(NAMES, rng.randint(1, 4))}
        try:
            result = explain(**words)
        except TstarError:
            continue
        answered += 1
        assert 0 < result.temperature <= 512
        json.dumps(result.to_dict(), allow_nan=False)
        assert str(result).startswith("T* = ")
    assert answered > 20  # the check sees both ends
