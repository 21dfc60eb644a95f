"""The one error and its messages, the one guard, the checks of what a user gives, late imports."""

import fractions
import json
import os
import random
import sys

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tstar.errors import (
    LARGEST_FILE,
    TstarError,
    guarded,
    number,
    positive,
    positive_csg,
    read_json,
    share,
    shown,
    unknown,
    whole,
)
from tstar.imports import lazy, require

NOT_NUMBERS = [
    *(True, "64", b"64", None, [64], 1 + 2j, float("nan"), float("inf"), 10**400, 10**5000),
    *(np.True_, np.array("64"), np.complex128(64), np.array([64]), np.array(64, dtype=object)),
    *(torch.tensor(True), torch.tensor([64]), torch.tensor(1j), torch.empty((), device="meta")),
]


def test_an_unknown_name_is_answered_with_the_nearest_or_all():
    names = ("batch", "none", "layer")
    assert str(unknown("norm", "bacth", names)) == "Unknown norm 'bacth'; did you mean 'batch'?"
    assert str(unknown("norm", "x", names)) == "Unknown norm 'x'; known: batch, layer, none."
    assert str(unknown("norm", 3, names)) == "Unknown norm 3; known: batch, layer, none."


def test_of_many_names_the_closest_are_shown():
    names = [f"net{i:04}" for i in range(1234)]
    said = str(unknown("network", "resnet", names, "zoo.names()"))
    assert said.startswith("Unknown network 'resnet'; known: net")
    assert said.endswith(" … and 1,229 more (zoo.names() lists them).")
    assert len(said) < 150
    assert str(unknown("network", 3, names)).endswith(" … and 1,229 more.")
    assert [str(unknown("network", 3, names[:n])).count("net0") for n in (60, 61)] == [60, 5]


def test_values_are_shown_short():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    assert shown("a") == "'a'"
    assert shown("x" * 500).endswith("… (502 characters)")
    assert len(shown("x" * 500)) < 120
    assert shown(Broken()) == "a Broken that cannot be printed"
    assert "cannot be printed" in shown(10**5000)


def test_a_missing_package_names_the_extra():
    assert require("json", "fit").dumps([]) == "[]"
    with pytest.raises(
        TstarError, match=r"needs the package 'nowhere'.*pip install 'tstar\[fit\]'"
    ):
        require("nowhere.to.be", "fit")


def test_an_import_sets_no_generator_from_which_another_thread_may_draw(tmp_path, monkeypatch):
    (tmp_path / "drawing.py").write_text("import random; random.random()", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delattr(random, "setstate")
    assert require("drawing", "lab").__name__ == "drawing"


def test_an_error_of_somebody_else_becomes_ours_and_a_warning_stays_itself():
    said = "The sample: KeyError: 'x'"
    with pytest.raises(TstarError, match=said) as caught, guarded("The sample"):
        {}["x"]
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(UserWarning, match="mind"), guarded("The sample"):
        raise UserWarning("mind")


def test_names_come_from_their_homes_and_modules_are_themselves():
    load = lazy("tstar", {"temperature": "formula", "law": None})
    assert load("temperature") is tstar.temperature
    assert load("law") is sys.modules["tstar.law"]
    with pytest.raises(AttributeError, match=r"module 'tstar' has no attribute 'nothing'"):
        load("nothing")


@pytest.mark.parametrize(
    "name", ["tstar", "tstar.lab.sweep", "tstar.lab.methods", "tstar.lab.training"]
)
def test_every_listed_name_loads(name):
    package = __import__(name, fromlist=["__all__"])
    assert all(getattr(package, listed) is not None for listed in package.__all__)


class Evil:
    def __getattribute__(self, name):
        raise RuntimeError("evil")


class Unshown(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("cannot be shown")


def test_what_objects_of_the_user_raise_is_named_at_the_door():
    x = [[float(i), 1.0] for i in range(12)]
    for call in (
        lambda: tstar.temperature(Evil(), 10),
        lambda: tstar.explain(64, 10, coefficients=Evil()),
        lambda: tstar.recommend(nn.Linear(4, 3), optimizer=Evil()),
        lambda: tstar.csg(x, [Unshown(i % 2) for i in range(12)]),
    ):
        with pytest.raises(TstarError, match=r"evil|cannot be shown"):
            call()


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number(value):
    for check in (
        number,
        positive,
        share,
        lambda name, v: whole(name, v, least=1),
    ):
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
    assert positive("csg", 0, zero=True) == 0
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

    with pytest.raises(TstarError, match="n must be a number"):
        number("n", Broken())


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
        ("{}" + LARGEST_FILE * " ", "at most 1,000,000 bytes"),
    ],
    ids=range(8),
)
def test_files_that_are_not_read(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match=message):
        read_json(path, "coefficients")


def test_names_from_a_file_are_made_printable(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"a\x1b": ["b\u202e", True, None, 1.5]}), encoding="utf-8")
    assert read_json(path, "names") == {"a\\x1b": ["b\\u202e", True, None, 1.5]}


def test_only_regular_files_are_opened(tmp_path):
    places = [tmp_path]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # to open it would block
        places += [tmp_path / "pipe", "/dev/zero"]
    for place in places:
        with pytest.raises(TstarError, match="no regular file"):
            read_json(place, "coefficients")
    with pytest.raises(TstarError, match="No such file"):
        read_json(tmp_path / "none.json", "coefficients")
