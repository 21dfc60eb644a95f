"""Whatever holds numbers as arrays, and labels as codes."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tstar import TstarError, csg
from tstar.data.arrays import encode


@pytest.mark.parametrize(
    "labels", [[3, 1, 3, 2, 1], ["b", "a", "b"], [True, False], [7, 7, -(2**40)]]
)
def test_an_array_of_labels_is_coded_as_the_list_of_its_values(labels):
    codes, classes = encode(np.array(labels))
    listed, names = encode(labels)
    assert codes.tolist() == listed.tolist()
    assert classes == names
    assert list(map(type, classes)) == list(map(type, names))


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), pd.NA, pd.NaT, Decimal("NaN"), np.ma.masked, np.datetime64("NaT")],
    ids=repr,
)
def test_a_label_that_is_missing_is_no_class(missing):
    with pytest.raises(TstarError, match="sample 1 has"):
        encode(["a", missing, "b", missing])


def test_a_frame_that_is_not_read_yet_is_refused():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"a": [1.0, 2.0], "label": [0, 1]}).lazy()
    with pytest.raises(TstarError, match=r"collect\(\)"):
        csg(lazy, "label")
