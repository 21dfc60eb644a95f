"""What messages are built with, the one guard, and names that are loaded on use."""

import random
import sys

import pytest
from torch import nn

import tstar
from tstar.errors import TstarError, guarded, shown, unknown
from tstar.imports import lazy, require


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
