"""A study of a few tiny runs on digits."""

import sqlite3

import pytest

from tests.lab.sweep.parts import OWN_STUDY, PARTS
from tests.lab.sweep.small import InlineEngine
from tstar.lab.sweep.study import Study, parse_study

STUDY = """
csg = false
[training]
epochs = 2
batch_size = 128
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 8
norm = ["batch", "none"]
temperature = [1, 4]
seeds = 2
"""


@pytest.fixture(autouse=True)
def every_connection_is_closed(monkeypatch):
    """Python warns of one that is not from 3.13 on alone, and only when it is collected."""
    connect, opened = sqlite3.connect, []

    class Connection(sqlite3.Connection):
        closed = False

        def close(self) -> None:
            super().close()
            self.closed = True

    def followed(*args, **options):
        opened.append(connect(*args, factory=Connection, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", followed)
    yield
    assert all(each.closed for each in opened), "a test or the store left a connection open"


@pytest.fixture
def study() -> Study:
    return parse_study(STUDY, "tiny")


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture
def inline():
    return InlineEngine


@pytest.fixture
def specs(study):
    return study.specs


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
    (tmp_path / "study.toml").write_text(OWN_STUDY, encoding="utf-8")
    return tmp_path
