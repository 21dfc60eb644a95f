"""Numbers that a user gives: what counts as one, and one clear error for what does not."""

import fractions

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.numbers import check_csg, number, positive, positive_csg, share, whole

NOT_NUMBERS = [
    *(True, "64", b"64", None, [64], 1 + 2j, float("nan"), float("inf"), 10**400, 10**5000),
    *(np.True_, np.array("64"), np.complex128(64), np.array([64]), np.array(64, dtype=object)),
    *(torch.tensor(True), torch.tensor([64]), torch.tensor(1j), torch.empty((), device="meta")),
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number(value):
    for check in (number, positive, share, lambda name, v: whole(name, v, least=1)):
        with pytest.raises(TstarError, match="x must be"):
            check("x", value)


@pytest.mark.parametrize(
    "value",
    [64, 64.0, np.int8(64), np.float16(64), np.array(64), torch.tensor(64), torch.tensor(64.0).bfloat16(),
     fractions.Fraction(64)],
)  # fmt: skip
def test_numbers_of_other_libraries_are_numbers(value):
    assert number("x", value) == positive("x", value) == 64.0
    count = whole("x", value, least=1)
    assert (count, type(count)) == (64, int)


def test_the_ends():
    assert whole("n", 2**60 + 1, least=1) == 2**60 + 1  # exact, though a float is not
    for bad in (0, 1.5, 9):
        with pytest.raises(TstarError, match="n must be a whole number from 1 to 8"):
            whole("n", bad, least=1, most=8)
    with pytest.raises(TstarError, match="x must be positive, got x=0"):
        positive("x", 0)
    assert positive("x", 0, zero=True) == 0
    with pytest.raises(TstarError, match="at least 0"):
        positive("x", -1, zero=True)
    assert positive("x", 180, zero=True, most=180) == 180
    with pytest.raises(TstarError, match="at least 0 and at most 180, got x=181"):
        positive("x", 181, zero=True, most=180)
    assert share("x", 0) == 0
    for bad, options in ((1, {}), (-0.1, {}), (0, {"zero": False}), (1.1, {})):
        with pytest.raises(TstarError, match="must hold"):
            share("x", bad, **options)
    assert check_csg(0) == 0
    with pytest.raises(TstarError, match="leave csg out"):
        positive_csg(0)


def test_a_whole_number_is_kept_to_its_last_digit():
    largest = 2**64 - 1  # which a float rounds up
    for value in (largest, np.uint64(largest)):
        assert whole("seed", value, least=0, most=largest) == largest
    assert whole("n", np.int64(2**53 + 1), least=0) == 2**53 + 1
    assert whole("n", torch.tensor(2**53 + 1), least=0) == 2**53 + 1


def test_whatever_a_number_of_someone_else_raises():
    class Broken:
        def __float__(self):
            raise KeyError("x")

    with pytest.raises(TstarError, match="n must be a single number"):
        number("n", Broken())
