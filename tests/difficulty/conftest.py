"""What the tests of csg share, as fixtures."""

import pytest

from tests.difficulty import helpers as shared


@pytest.fixture(scope="session")
def helpers():
    return shared


@pytest.fixture(scope="module")
def images(helpers):
    return helpers.pictures(90, 3, 32)
