"""Missing values as every reader brings them."""

import numpy as np
import pandas as pd
import pytest

from tstar.curves.reading import plain_value


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_a_missing_value_is_none(missing):
    assert plain_value(missing) is None


@pytest.mark.parametrize(
    ("value", "plain"), [(np.int64(3), 3), (np.float32(0.5), 0.5), ("x", "x"), (0, 0)]
)
def test_a_value_is_python_s_own(value, plain):
    assert plain_value(value) == plain
    assert type(plain_value(value)) is type(plain)
