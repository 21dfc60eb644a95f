"""Temperature check: its grid, and that it is no single run."""

from itertools import pairwise

import pytest

from tstar import TstarError, methods


def test_the_grid_is_log_spaced_over_the_papers_range():
    T = methods.get("temperature-check").candidates
    assert len(T) == 7
    assert max(T) == pytest.approx(100)
    assert min(T) == pytest.approx(0.1)
    ratios = {round(a / b, 9) for a, b in pairwise(T)}
    assert ratios == {round(10**0.5, 9)}


def test_a_search_is_not_one_run():
    from torch import nn

    with pytest.raises(TstarError, match=r"tstar\.methods\.search"):
        methods.get("temperature-check").prepare(nn.Linear(3, 2), methods.Facts(3, 2))
    with pytest.raises(TstarError, match="does not search"):
        methods.search(methods.get("default"), lambda method: 1.0)
