"""Whatever holds numbers as arrays, and labels as codes."""

import numpy as np
import pytest

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
