"""Lists of runs that grow with the results."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from research import running
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

FIRST = Spec(dataset="digits", model="mlp", temperature=1.0, norm="none", num_features=8)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store whose trainings are not run: those of seed 2 fail."""

    def execute(job, data):
        status = "failed" if job.spec.seed == 2 else "done"
        values = {"test_accuracy": 0.5 + job.spec.seed / 10, "error": "no\nreason" if status == "failed" else None}  # fmt: skip
        return SimpleNamespace(key=job.spec.key, status=status, values=values)

    monkeypatch.setattr(running, "execute", execute)
    monkeypatch.setattr(running, "load_data", lambda key, root: None)
    monkeypatch.setattr(running, "checksum", lambda data: "0" * 16)
    with Store(tmp_path / "runs.db", create=True) as opened:
        yield opened


def grown(found):
    """A second and a third run once the first is there."""
    specs = {"first": FIRST}
    if running.identity(FIRST) in found:
        specs |= {f"seed {n}": replace(FIRST, seed=n) for n in (1, 2)}
    return specs


def test_the_list_grows_a_failure_is_tried_once_and_nothing_runs_twice(store):
    lines = list(running.complete(store, grown, "", "study"))
    assert [line.partition(":")[0] for line in lines] == ["first", "seed 1", "seed 2"]
    assert lines[-1].endswith("reason")
    assert len(running.by_identity(store.rows())) == 2
    again = list(running.complete(store, grown, "", "study"))
    assert [line.partition(":")[0] for line in again] == ["seed 2"]


def test_what_is_known_from_elsewhere_is_not_run(store):
    known = {running.identity(FIRST): {"status": "done"}}
    lines = list(running.complete(store, grown, "", "study", known=known))
    assert not any(line.startswith("first") for line in lines)


def test_identity_leaves_out_the_data_alone():
    assert running.identity(replace(FIRST, data_checksum="1" * 16)) == running.identity(FIRST)
    assert running.identity(replace(FIRST, seed=1)) != running.identity(FIRST)
