"""Runs as they are read, and missing values as every reader brings them."""

import numpy as np
import pandas as pd
import pytest

from tests.planted import frame
from tstar.curves.reading import plain_value, read
from tstar.errors import TstarError


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
def test_a_missing_value_is_none(missing):
    assert plain_value(missing) is None


@pytest.mark.parametrize(
    ("value", "plain"), [(np.int64(3), 3), (np.float32(0.5), 0.5), ("x", "x"), (0, 0)]
)
def test_a_value_is_python_s_own(value, plain):
    assert plain_value(value) == plain
    assert type(plain_value(value)) is type(plain)


def test_some_runs_of_a_store_are_chosen(tmp_path):
    path = tmp_path / "runs.csv"
    runs = frame(lambda dataset, M: 2.0)
    runs.to_csv(path, index=False)
    assert len(read(path)) == len(runs)
    found = read(path, where="dataset == 'a' and temperature > 10")
    assert len(found) == len(runs.query("dataset == 'a' and temperature > 10"))
    with pytest.raises(TstarError, match=r"No runs of .*runs\.csv' were chosen"):
        read(path, where="dataset == 'c'")
