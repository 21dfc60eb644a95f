"""What the norm alone does."""

import math
import statistics

import pytest

from tests.report.planted import rows
from tstar.report.figures.bn_difference import bn_difference_data


def test_bn_difference_is_with_minus_without(records):
    data = bn_difference_data(records)
    panel = next(p for p in data.panels if p.title.startswith("hard"))
    for i, M in enumerate(panel.num_features):
        bn = rows(records, dataset="hard", num_features=M, norm="batch", temperature=1.0)
        plain = rows(records, dataset="hard", num_features=M, norm="none", temperature=1.0)
        assert panel.at_one[i].value == pytest.approx(
            100 * (statistics.mean(bn) - statistics.mean(plain))
        )
        paired = [b - p for b, p in zip(bn, plain, strict=True)]  # seed by seed
        error = statistics.stdev(paired) / math.sqrt(3)
        assert panel.at_one[i].error == pytest.approx(100 * error)
    # Planted: the peaks are equally high, and T = 1 is farther from the peak with BN.
    assert all(abs(d.value) < 2 for d in panel.at_best)
    assert all(d.value < -1.5 for d in panel.at_one)
