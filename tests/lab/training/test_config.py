"""The protocol's defaults are the paper's, and wrong values are refused by name."""

import dataclasses
import re

import pytest

from tests.test_package import loaded_by
from tstar.errors import TstarError
from tstar.lab.training import Config


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("optimizer", "sdg", "did you mean 'sgd'"),
        ("schedule", "cosin", "did you mean 'cosine'"),
        ("optimizer", "lion", "'lion'; known: adam, adamw, sgd. Your own is given as package.module:name"),
        ("metric", "f1", "Unknown metric 'f1'; known: . Your own is given as"),
        ("epochs", 0, "epochs must be a whole number of at least 1"),
        ("epochs", 1.5, "whole number"),
        ("epochs", True, "epochs must be a number"),
        ("batch_size", 1, "batch_size must be a whole number of at least 2"),
        ("lr", -0.1, "lr must be positive"),
        ("lr", float("nan"), "finite"),
        ("lr", "0.1", "a number"),
        ("momentum", 1.0, "0 <= momentum < 1"),
        ("val_fraction", 1.0, "0 <= val_fraction < 1"),
        ("label_smoothing", -0.1, "0 <= label_smoothing < 1"),
        ("amp", 1, "amp must be true or false"),
        ("steps", 0, "steps must be a whole number of at least 1"),
        ("rotation", 200, "rotation must be at least 0 and at most 180"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(field, value, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        Config(**{field: value})


def test_whole_numbers_stand_for_floats():
    assert Config(lr=1) == Config(lr=1.0)
    assert isinstance(Config(lr=1).lr, float)
    assert dataclasses.replace(Config(), epochs=3).epochs == 3


def test_reading_the_protocol_needs_no_torch():
    modules = "tstar.lab.training, tstar.lab.sweep.study, tstar.lab.sweep.store"
    assert "torch" not in loaded_by(f"import {modules}")
