"""Temperature scaling: never another class, never a worse NLL, and honest about eval mode."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.methods.networks import dropout_net, sample
from tstar import TstarError, TstarWarning, methods
from tstar.methods.calibration import (
    calibration_error,
    fit_temperature,
    nll,
    reliability,
)


def test_it_finds_the_temperature_that_the_targets_were_drawn_at():
    for scale in (0.2, 1.0, 8.0):
        logits, targets = sample(0, scale, n=4000)
        assert fit_temperature(logits, targets).temperature == pytest.approx(scale, rel=0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 50))
def test_it_is_a_minimum_of_the_nll_and_scales_with_the_logits(seed, scale):
    logits, targets = sample(seed, n=60)
    fit = fit_temperature(logits * scale, targets)
    assert fit.nll_after <= fit.nll_before
    if not fit.at_bound:
        for nearby in (0.99, 1.01):
            assert nll(logits * scale, targets, fit.temperature * nearby) >= fit.nll_after - 1e-9


def test_nll_against_numpy():
    logits, targets = sample(1, n=30)
    z = logits.numpy() / 3
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    assert nll(logits, targets, 3.0) == pytest.approx(
        -log_p[np.arange(30), targets].mean(), rel=1e-12
    )


def test_separable_data_stop_at_the_bound_and_say_so():
    targets = torch.arange(30) % 3
    logits = 5 * F.one_hot(targets, 3).double()
    fit = fit_temperature(logits, targets)
    assert fit.at_bound
    assert fit.temperature < 0.2
    flipped = fit_temperature(logits, (targets + 1) % 3)  # always wrong: the flatter the better
    assert flipped.at_bound
    assert flipped.temperature == pytest.approx(100, rel=0.01)
    model = nn.Linear(3, 3, bias=False, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.eye(3))
    with pytest.warns(TstarWarning, match="bound"):
        methods.calibrate(nn.Sequential(model), logits, targets)


def test_the_calibration_error_and_the_diagram_agree():
    """Σ n_b/n·|accuracy_b − confidence_b| of the diagram is the error."""
    logits, targets = sample(4, scale=3.0)
    d = reliability(logits, targets)
    assert sum(d.count) == 400
    total = sum(
        n * abs(a - c) for n, a, c in zip(d.count, d.accuracy, d.confidence, strict=True) if n
    )
    assert calibration_error(logits.softmax(1), targets) == pytest.approx(total / 400, abs=1e-6)
    inside = [
        low <= c <= high
        for low, high, c in zip(d.edges, d.edges[1:], d.confidence, strict=False)
        if not math.isnan(c)
    ]
    assert all(inside)


def test_the_diagram_is_drawn(tmp_path):
    x, y = sample(3)
    _, result = methods.calibrate(dropout_net(), x.float(), y)
    figure = result.plot(tmp_path / "reliability.svg")
    assert len(figure.axes) == 2
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    expected = [a for a in result.after.accuracy if not math.isnan(a)]
    assert heights == pytest.approx(expected)
    assert (tmp_path / "reliability.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("logits", "targets", "match"),
    [
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.long), "one target per row"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "N >= 1"),
        (torch.full((2, 2), torch.nan), torch.zeros(2, dtype=torch.long), "finite"),
    ],
)
def test_bad_input_is_refused(logits, targets, match):
    with pytest.raises(TstarError, match=match):
        fit_temperature(logits, targets)


def test_fifteen_bins_unless_asked_otherwise():
    """Guo et al.'s number, and the training loop's own: the diagram and the error speak of the same bins."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(300, 6, generator=generator)
    targets = torch.randint(6, (300,), generator=generator)
    found = reliability(logits, targets)
    assert len(found.count) == 15
    same = calibration_error(logits.softmax(1), targets, bins=15)
    assert calibration_error(logits.softmax(1), targets) == same
    other = calibration_error(logits.softmax(1), targets, bins=10)
    assert abs(same - other) > 1e-4
