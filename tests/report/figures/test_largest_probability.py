"""The largest probability of random logits."""

import math

import pytest

from tstar.report.figures.largest_probability import largest_probability_data


def test_largest_probability_of_two_classes_is_a_logistic_normal():
    # The larger of two is sigmoid(|d|) with d ~ N(0, 2): quantiles follow from the normal's.
    box = largest_probability_data((2,), samples=40_000).boxes[0]
    for got, share in ((box.q1, 0.25), (box.median, 0.5), (box.q3, 0.75)):
        quantile = {0.25: 0.318639, 0.5: 0.674490, 0.75: 1.150349}[share]  # of |N(0, 1)|
        assert got == pytest.approx(1 / (1 + math.exp(-math.sqrt(2) * quantile)), abs=0.01)


def test_largest_probability_falls_with_the_number_of_classes_and_with_temperature():
    data = largest_probability_data(samples=500)
    assert data.classes == tuple(2**i for i in range(1, 11))
    medians = [box.median for box in data.boxes]
    assert medians == sorted(medians, reverse=True)
    hot = largest_probability_data(samples=500, temperature=4.0)
    assert all(h.median < m for h, m in zip(hot.boxes, medians, strict=True))
    assert largest_probability_data(samples=500) == data
