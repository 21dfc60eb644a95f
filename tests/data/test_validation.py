"""What must hold of a data set's arrays."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.data.small import make
from tstar import TstarError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_train": torch.zeros(5, dtype=torch.int64)}, "same length, but got 24 samples and 5 labels"),
        ({"y_train": torch.arange(24) % 3 + (torch.arange(24) % 3 == 2)}, "none of class 2"),
        ({"y_train": torch.arange(24) % 4 + 1}, "without gaps"),
        ({"y_train": torch.arange(24) % 4 - 1}, "from -1 to 2"),
        ({"y_train": torch.zeros(24, dtype=torch.int64), "classes": ("a",)}, "at least two classes"),
        ({"classes": ("a", "b", "c", "a")}, r"must differ, but \['a'\]"),
        ({"classes": ("a", "b", "c", "d", "e")}, "none of class 4"),
        ({"y_test": torch.full((8,), 7)}, "label 7 does not"),
        ({"y_test": torch.arange(8.0)}, "int64 label"),
        ({"x_train": torch.zeros(24, 3, 2, 2)}, "torch.uint8, but got .* of torch.float32"),
        ({"x_test": torch.zeros(8, 3, 4, 4, dtype=torch.uint8)}, "one shape"),
        ({"x_test": torch.zeros(0, 3, 2, 2, dtype=torch.uint8), "y_test": torch.zeros(0).long()}, "not be empty"),
        ({"domain": "images"}, "did you mean 'image'"),
    ],
)  # fmt: skip
def test_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TstarError, match=message):
        make(**changes)


def test_not_a_number_is_refused() -> None:
    x = torch.zeros(24, 5)
    x[3, 1] = float("nan")
    with pytest.raises(TstarError, match="1 of 24 samples hold NaN"):
        make(domain="vector", x_train=x, x_test=torch.zeros(8, 5))


def test_replacing_a_field_is_checked_too() -> None:
    with pytest.raises(TstarError, match="same length"):
        replace(make(), y_test=torch.zeros(3, dtype=torch.int64))
