"""Digits to train on."""

import pytest

from tstar.lab.data import load


@pytest.fixture(scope="module")
def data():
    return load("digits").subset(300, 100)
