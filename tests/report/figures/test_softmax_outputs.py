"""Softmax outputs against temperature."""

import math

import numpy as np
import pytest

from tstar.report.figures.softmax_outputs import softmax_outputs_data


def test_softmax_outputs_are_the_ratio_of_exponentials():
    data = softmax_outputs_data((1.0, 4.0, -2.0), (0.5, 1.0, 8.0))
    for T, row in zip(data.temperatures, data.probabilities, strict=True):
        raw = [math.exp(z / T) for z in (1.0, 4.0, -2.0)]
        assert row == pytest.approx([value / sum(raw) for value in raw], rel=1e-12)


def test_softmax_outputs_do_not_overflow():
    assert np.isfinite(softmax_outputs_data((5000.0, 0.0), (0.1, 1.0)).probabilities).all()
