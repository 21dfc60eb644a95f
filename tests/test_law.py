"""The temperature that suits a way of training, against values worked out by hand."""

import pytest

import tstar
from tstar import TstarError
from tstar.law import law_temperature
from tstar.training import Training


def sgd(lr=0.01, steps=8000, momentum=0.9, batch_size=32):
    return Training("sgd", lr=lr, steps=steps, momentum=momentum, batch_size=batch_size)


def test_by_hand():
    # 0.61·sqrt(0.1·90)·(1600/(10·10·0.1))^(1/4)
    assert law_temperature(90, 10, sgd(0.1, 1600, 0.9, 10)) == pytest.approx(0.61 * 3 * 160**0.25)
    assert law_temperature(90, 10, Training("adamw", lr=1e-3, steps=100)) == 2.0
    assert law_temperature(90, 10, Training("adam", scenario="finetune")) == 0.5


def test_how_it_scales():
    def T(M=64, K=10, **changes):
        return law_temperature(M, K, sgd(**changes))

    for change in ({"lr": 0.16}, {"M": 1024}):
        assert T(**change) / T() == pytest.approx(4), change
    for change in ({"steps": 128_000}, {"batch_size": 2}):
        assert T(**change) / T() == pytest.approx(2), change
    assert T(K=160) / T() == pytest.approx(0.5)
    assert T(momentum=0.0) / T() == pytest.approx(10**-0.25)
    assert (T(lr=1e-9), T(lr=1e300)) == (0.25, 64.0)


def test_where_the_paper_fitted_the_two_agree():
    found = law_temperature(512, 10, sgd(0.1, 7800, 0.9, 128))
    assert found == pytest.approx(tstar.temperature(512), rel=0.1)


@pytest.mark.parametrize("how", [Training("sgd", lr=0.1), Training("lion", lr=0.1, steps=10)])
def test_a_training_that_the_law_does_not_know(how):
    with pytest.raises(TstarError, match="lr and steps"):
        law_temperature(64, 10, how)
