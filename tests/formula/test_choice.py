"""One choice of coefficients, whoever asks."""

import pytest

import tstar
from tstar import TstarError
from tstar.formula.choice import choose, choose_variant, csg_range, evidence, uses_csg
from tstar.formula.training import Training

AWARE = Training("sgd", 0.1, 800)


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
        (10, 5.0, AWARE, "speed"),
        (10, 5.0, Training("lion", 0.1, 800), "csgcn"),  # and then T = 1
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


def test_the_old_word_for_base():
    assert tstar.temperature(64, variant="none") == tstar.temperature(64, variant="base")


def test_whether_csg_is_worth_measuring():
    assert uses_csg(Training())
    assert uses_csg(Training(scenario="finetune"))
    assert not uses_csg(Training(scenario="scratch"))
    assert not uses_csg(AWARE)
    assert not uses_csg(Training(), variant="cn")
    assert uses_csg(AWARE, variant="csg")


def test_the_evidence_is_read_as_data():
    assert {"scratch", "finetune", "without_csg"} <= set(evidence())
    for scenario in ("scratch", "finetune"):
        assert choose_variant(5.0, scenario) == tuple(
            evidence()[scenario][key] for key in ("variant", "evidence")
        )
        assert choose_variant(None, scenario)[0] == evidence()["without_csg"][scenario]["variant"]


def test_variant_and_coefficients_must_agree():
    own = tstar.Coefficients("mine", 1.0, 0.0)
    assert choose(10, None, Training(), "none", own)[0] is own
    with pytest.raises(TstarError, match="must agree"):
        choose(10, None, Training(), "cn", own)
