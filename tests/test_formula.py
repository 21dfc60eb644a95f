"""The closed form, against values worked out by hand and against its own algebra."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tstar
from tstar import Coefficients, TstarError
from tstar.formula import (
    Provenance,
    choose,
    choose_variant,
    csg_range,
    explain,
    get,
    published,
    temperature,
)
from tstar.training import Training

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


def test_the_papers_table():
    table = {name: (c.alpha, c.beta, c.gamma, c.delta) for name, c in published().items()}
    assert table == {
        "base": (0.7239, -4.706, None, None),
        "csg": (0.4111, 6.848, -2.024, None),
        "cn": (0.4051, 6.656, None, -1.973),
        "csgcn": (0.3192, 20.74, 3.746, -7.38),
    }
    assert all((c.minimum, c.maximum) == (1.0, 512.0) for c in published().values())
    assert all(c.variant == name for name, c in published().items())


def test_provenance_says_what_was_fitted_and_what_only_validated():
    origin = get("csgcn").provenance
    fitted, validated = zip(
        *map(origin.ranges, ("num_features", "num_classes", "csg")), strict=True
    )
    assert fitted == ((64, 512), (10, 200), (1.53, 88.72))
    assert validated == ((768, 2048), (8, 200), (1.39, 75.32))
    paper = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "epochs": 200, "batch_size": 128}
    assert {name: origin.training[name] for name in paper} == paper


def test_the_clip_acts_at_both_bounds():
    low, high = explain(1, variant="base"), explain(10**6, variant="base")
    assert (low.temperature, high.temperature) == (1.0, 512.0)
    assert low.unclipped == pytest.approx(-3.9821)
    assert any("outside its bounds" in note for note in low.notes)
    assert not any("outside its bounds" in note for note in explain(256).notes)


def test_what_was_never_tried_is_noted():
    (caution,) = explain(256, 100, 25.5).notes
    assert caution.startswith("This T is for the paper's training (SGD at 0.1, 200 epochs)")
    assert explain(2048, 8, 3.85).notes == (caution,)
    outside = explain(32, 1000, 0.1, variant="csgcn").notes
    assert [note.split()[0] for note in outside] == ["M", "csg", "K", "The", "This"]  # the clip
    assert len(explain(600).notes) == 2  # between 512 and 768: nobody has looked
    assert explain(256, 1000, variant="base").notes == (caution,)  # K is not used


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


@pytest.mark.parametrize(
    ("K", "csg", "training", "variant"),
    [
        (None, None, Training(), "base"),
        (None, 5.0, Training(), "csg"),
        (None, 0.1, Training(), "base"),  # the csg term would be extrapolation
        (10, None, Training(), "cn"),
        (10, None, Training(scenario="finetune"), "cn"),
        (10, 5.0, Training(), "csgcn"),
        (10, 5.0, Training(scenario="scratch"), "cn"),
        (10, 5.0, Training(scenario="finetune"), "csgcn"),
        (10, 0.1, Training(scenario="finetune"), "cn"),
        (10, 5.0, Training("sgd", 0.1, 800), "law"),
        (None, 5.0, Training("sgd", 0.1, 800), "csg"),  # the law needs K
        (10, 5.0, Training("lion", 0.1, 800), "csgcn"),
        (10, 5.0, Training("sgd", 0.1), "csgcn"),
    ],
)
def test_the_set_for_what_is_known(K, csg, training, variant):
    chosen, reason = choose(K, csg, training)
    assert chosen.variant == variant
    assert reason


def test_csg_counts_only_inside_the_papers_range():
    low, high = csg_range()
    assert (low, high) == (1.39, 88.72)
    for csg, variant in ((low, "csgcn"), (high, "csgcn"), (low - 0.01, "cn"), (high + 0.01, "cn")):
        assert choose_variant(csg, "finetune")[0] == variant


def test_the_default_variants_are_those_that_the_papers_tables_favor():
    folder = Path(tstar.__file__).parent / "lab" / "paper"
    known = json.loads((folder / "default_variant.json").read_text(encoding="utf-8"))
    for scenario in ("scratch", "finetune"):
        assert choose_variant(5.0, scenario)[0] == known[scenario]["variant"]
        assert choose_variant(None, scenario)[0] == known["without_csg"][scenario]["variant"]


def test_the_law_where_the_paper_fitted_agrees_with_the_paper():
    how = dict(optimizer="sgd", lr=0.1, steps=7800, batch_size=128)
    assert temperature(512, 10, **how) == pytest.approx(temperature(512), rel=0.1)
    told = explain(512, 10, **how)
    assert "0.61·sqrt(lr·M)" in str(told)
    assert "The paper's T*" in str(told)
    assert any("batch_size" in n for n in explain(512, 10, optimizer="sgd", lr=0.1, steps=9).notes)


def test_half_a_training_gives_no_bare_number():
    with pytest.raises(TstarError, match="lr is missing"):
        temperature(64, 10, optimizer="sgd", steps=100)
    assert "lr" in explain(64, 10, optimizer="sgd", steps=100).notes[0]
    assert "lion" in explain(64, 10, optimizer="lion", lr=1, steps=9).notes[-1]
    assert temperature(64, 10, optimizer="lion", steps=9) == temperature(64, 10)


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
        (dict(num_features=4, variant="law"), "need num_classes"),
        (dict(num_features=4, variant="cm"), "did you mean 'cn'"),
        (dict(num_features=4, num_classes=3, csg=0, variant="csg"), "leave csg out"),
    ):
        with pytest.raises(TstarError, match=message):
            temperature(**words)


def test_round_trip(tmp_path):
    scope = {"num_features": [32, 64], "note": "two widths"}
    origin = Provenance("my sweep", fitted=scope, training={"optimizer": "adamw"})
    own = Coefficients("mine", 0.5, -1.0, gamma=2.0, minimum=0.25, provenance=origin)
    for each in (own, *published().values(), get("law")):
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
        ('{"name": "x", "alpha": 1, "beta": 0, "budget": 3}', "as Coefficients.save"),
    ],
)
def test_files_that_hold_no_set(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match=message):
        Coefficients.load(path)


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
NAMES = (
    *("num_features", "num_classes", "csg", "variant", "coefficients", "optimizer", "lr", "momentum"),
    *("steps", "epochs", "samples", "batch_size", "weight_decay", "scheduler", "scenario"),
)  # fmt: skip


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
        assert str(result).startswith("T = ")
    assert answered > 20  # the check sees both ends
