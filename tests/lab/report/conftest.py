"""Stores of planted runs, and what is read from them."""

import pytest

from tests.lab.report.planted import planted, write
from tstar.lab.report.records import load


@pytest.fixture
def make_store(tmp_path):
    def make(name="runs.db", *, diverged=(), change=lambda rows: rows, **options):
        return write(tmp_path / name, change(planted(**options)), diverged=diverged)

    return make


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A store that all tests may read."""
    return write(tmp_path_factory.mktemp("report") / "runs.db", planted(methods=("insert-ln",)))


@pytest.fixture(scope="session")
def records(store):
    return load(store)
