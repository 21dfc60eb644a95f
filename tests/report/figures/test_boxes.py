"""Boxes and whiskers."""

import pytest

from tstar.report.figures.boxes import box_of


def test_a_box_is_tukey_s():
    box = box_of([1, 2, 3, 4, 5, 100])
    assert (box.q1, box.median, box.q3) == (2.25, 3.5, 4.75)
    assert (box.low, box.high) == (1, 5)  # 100 is farther than 1.5·2.5 above 4.75
    assert (box.mean, box.n) == (pytest.approx(115 / 6), 6)
