"""What a user gives: numbers, and files that are read."""

import fractions
import json
import os

import numpy as np
import pytest
import torch

from tstar import TstarError, checks

NOT_NUMBERS = [
    *(True, "64", b"64", None, [64], 1 + 2j, float("nan"), float("inf"), 10**400, 10**5000),
    *(np.True_, np.array("64"), np.complex128(64), np.array([64]), np.array(64, dtype=object)),
    *(torch.tensor(True), torch.tensor([64]), torch.tensor(1j), torch.empty((), device="meta")),
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number(value):
    for check in (
        checks.number,
        checks.positive,
        checks.share,
        lambda name, v: checks.whole(name, v, least=1),
    ):
        with pytest.raises(TstarError, match="x must be"):
            check("x", value)


@pytest.mark.parametrize(
    "value",
    [64, 64.0, np.int8(64), np.float16(64), np.array(64), torch.tensor(64), torch.tensor(64.0).bfloat16(),
     fractions.Fraction(64)],
)  # fmt: skip
def test_numbers_of_other_libraries_are_numbers(value):
    assert checks.number("x", value) == checks.positive("x", value) == 64.0
    count = checks.whole("x", value, least=1)
    assert (count, type(count)) == (64, int)


def test_the_ends():
    assert checks.whole("n", 2**60 + 1, least=1) == 2**60 + 1  # exact, though a float is not
    for bad in (0, 1.5, 9):
        with pytest.raises(TstarError, match="n must be a whole number from 1 to 8"):
            checks.whole("n", bad, least=1, most=8)
    with pytest.raises(TstarError, match="x must be positive, got x=0"):
        checks.positive("x", 0)
    assert checks.positive("x", 0, zero=True) == 0
    with pytest.raises(TstarError, match="at least 0"):
        checks.positive("x", -1, zero=True)
    assert checks.positive("x", 180, zero=True, most=180) == 180
    with pytest.raises(TstarError, match="at least 0 and at most 180, got x=181"):
        checks.positive("x", 181, zero=True, most=180)
    assert checks.share("x", 0) == 0
    for bad, options in ((1, {}), (-0.1, {}), (0, {"zero": False}), (1.1, {})):
        with pytest.raises(TstarError, match="must hold"):
            checks.share("x", bad, **options)
    assert checks.positive("csg", 0, zero=True) == 0
    with pytest.raises(TstarError, match="leave csg out"):
        checks.positive_csg(0)


def test_a_whole_number_is_kept_to_its_last_digit():
    largest = 2**64 - 1  # which a float rounds up
    for value in (largest, np.uint64(largest)):
        assert checks.whole("seed", value, least=0, most=largest) == largest
    assert checks.whole("n", np.int64(2**53 + 1), least=0) == 2**53 + 1
    assert checks.whole("n", torch.tensor(2**53 + 1), least=0) == 2**53 + 1


def test_whatever_a_number_of_someone_else_raises():
    class Broken:
        def __float__(self):
            raise KeyError("x")

    with pytest.raises(TstarError, match="n must be a number"):
        checks.number("n", Broken())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON file of coefficients"),
        ("[1]", "one JSON object, got list"),
        ('{"a": NaN}', "must be finite"),
        ('{"a": [1e999]}', "must be finite"),
        ('{"a": {"b": 1' + 400 * "0" + "}}", "must be finite"),
        ('{"a": 1' + 5000 * "0" + "}", "not a JSON file"),
        (200_000 * "[", "not a JSON file"),
        ("{}" + checks.LARGEST_FILE * " ", "at most 1,000,000 bytes"),
    ],
    ids=range(8),
)
def test_files_that_are_not_read(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match=message):
        checks.read_json(path, "coefficients")


def test_names_from_a_file_are_made_printable(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"a\x1b": ["b\u202e", True, None, 1.5]}), encoding="utf-8")
    assert checks.read_json(path, "names") == {"a\\x1b": ["b\\u202e", True, None, 1.5]}


def test_only_regular_files_are_opened(tmp_path):
    places = [tmp_path]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # to open it would block
        places += [tmp_path / "pipe", "/dev/zero"]
    for place in places:
        with pytest.raises(TstarError, match="no regular file"):
            checks.read_json(place, "coefficients")
    with pytest.raises(TstarError, match="No such file"):
        checks.read_json(tmp_path / "none.json", "coefficients")
