"""A small data set that the tests of a check share."""

import pytest

from tstar.data import load


@pytest.fixture(scope="session")
def digits():
    return load("digits").subset(500, 100)
