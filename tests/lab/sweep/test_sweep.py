"""``tstar.lab.run_study``: a study into a store, in one call."""

import pytest

import tstar.lab.sweep as sweeping
from tests.lab.sweep.small import rows_of
from tstar import TstarError
from tstar.lab import methods, models
from tstar.lab.sweep import run_study
from tstar.lab.sweep.store import Store, owned
from tstar.lab.sweep.study import load_study


@pytest.fixture
def local(inline, monkeypatch):
    """The local engine without processes; what it was asked for is noted."""
    asked = []
    engine = inline()
    monkeypatch.setattr(
        "tstar.lab.sweep.engine.LocalEngine", lambda *given: asked.append(given) or engine
    )
    return asked


def test_parts_of_a_study_file_make_the_whole(local, study_file, path):
    seen = []
    first = run_study(study_file, path, part=(1, 2), workers=3, device="cpu", on_run=seen.append)
    assert local == [(3, "cpu", None)]
    assert (first.done, len(seen)) == (4, 4)
    assert run_study(study_file, path, part=(2, 2)).done == 4
    assert run_study(study_file, path).before == 8
    names = ("norm", "temperature", "seed")
    asked = {(s.norm, s.temperature, s.seed) for s in load_study(study_file).specs}
    assert {tuple(row[n] for n in names) for row in rows_of(path).values()} == asked
    assert sorted(p.name for p in path.parent.iterdir()) == [
        *("runs.db", "runs.db.owner", "tiny.toml")
    ]


def test_a_second_sweep_is_told_who_owns_the_store(local, study_file, path):
    with owned(path), pytest.raises(TstarError, match="is owned by process"):
        run_study(study_file, path)
    assert not path.exists()


DOORS = {
    "load_study": sweeping.load_study,
    "load_runs": sweeping.load_runs,
    "export": lambda value: sweeping.export("none.db", value),
    "merge": sweeping.merge,
    "methods": methods.get,
    "models": lambda value: models.build(value, 10),
    "seed": lambda value: models.build("mlp", 10, seed=value or "x"),
    "store": Store,
    "study": lambda value: run_study(value, "runs.db"),
    **{
        name: lambda value, name=name: run_study("study.toml", "runs.db", **{name: value or [3]})
        for name in ("device", "gpus_per_run", "part", "data_root", "workers", "engine")
    },
}


@pytest.mark.parametrize("value", [None, 2.5, b"x", [3], object(), "x" * 5000, "a\0b"])
@pytest.mark.parametrize("door", DOORS)
def test_wrong_kinds_are_errors_of_ours(door, value, local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TstarError):
        DOORS[door](value)
    assert not (tmp_path / "runs.db").exists()
