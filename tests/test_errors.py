"""What messages are built with."""

import pytest

from tstar.errors import TstarError, require, shown, unknown


def test_an_unknown_name_is_answered_with_the_nearest_or_all():
    names = ("batch", "none", "layer")
    assert str(unknown("norm", "bacth", names)) == "Unknown norm 'bacth'; did you mean 'batch'?"
    assert str(unknown("norm", "x", names)) == "Unknown norm 'x'; known: batch, layer, none."
    assert str(unknown("norm", 3, names)) == "Unknown norm 3; known: batch, layer, none."


def test_of_many_names_the_closest_are_shown():
    names = [f"net{i:04}" for i in range(1234)]
    said = str(unknown("network", "resnet", names, "zoo.names()"))
    assert said.startswith("Unknown network 'resnet'; known: net")
    assert said.endswith(", … and 1,229 more (zoo.names() lists them).")
    assert len(said) < 150
    assert str(unknown("network", 3, names)).endswith(", … and 1,229 more.")


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
