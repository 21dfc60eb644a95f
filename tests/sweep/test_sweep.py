"""``tstar.sweep.sweep``: a study into a store, in one call."""

import pytest

from tests.sweep.small import rows_of
from tstar import TstarError
from tstar.sweep import sweep
from tstar.sweep.study import load_study


@pytest.fixture
def local(inline, monkeypatch):
    """The local engine without processes; what it was asked for is noted."""
    asked = []
    engine = inline()
    monkeypatch.setattr(
        "tstar.sweep.engine.LocalEngine", lambda *given: asked.append(given) or engine
    )
    return asked


def test_parts_of_a_study_file_make_the_whole(local, study_file, path):
    seen = []
    first = sweep(study_file, path, part=(1, 2), workers=3, device="cpu", on_run=seen.append)
    assert local == [(3, "cpu", None)]
    assert (first.done, len(seen)) == (4, 4)
    assert sweep(study_file, path, part=(2, 2)).done == 4
    assert sweep(study_file, path).before == 8
    names = ("norm", "temperature", "seed")
    asked = {(s.norm, s.temperature, s.seed) for s in load_study(study_file).specs}
    assert {tuple(row[n] for n in names) for row in rows_of(path).values()} == asked
    assert sorted(p.name for p in path.parent.iterdir()) == ["runs.db", "tiny.toml"]  # no more


def test_an_unknown_engine_is_refused_before_a_store_is_made(path):
    with pytest.raises(TstarError, match="Unknown engine 'slurm'"):
        sweep("no.toml", path, engine="slurm")
    assert [*path.parent.iterdir()] == []
