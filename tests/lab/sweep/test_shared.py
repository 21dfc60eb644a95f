"""One copy of the data for all workers."""

import pytest

from tests.lab.sweep.small import do, rows_of, tiny
from tstar.errors import TstarError
from tstar.lab.sweep.shared import shared_folder


def test_a_folder_of_somebody_else_is_not_deleted(tmp_path):
    mine = tmp_path / "runs.db.data"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(TstarError, match="no sweep has made it"), shared_folder(mine):
        pass
    assert (mine / "thesis.txt").exists()


@pytest.mark.parametrize("left", [[], ["0" * 16], ["0" * 16, f".{'f' * 16}.12.34.part"]])
def test_what_a_killed_sweep_left_goes_at_whatever_moment_it_was_killed(left, tmp_path):
    folder = tmp_path / "runs.db.data"
    folder.mkdir()
    for name in left:
        (folder / name).touch()
    with shared_folder(folder):
        assert not [*folder.iterdir()]
    assert not folder.exists()


def test_workers_map_one_copy_of_the_data(tmp_path, inline, monkeypatch):
    """The numbers are those of the copy in memory, bit for bit, and the folder is gone afterwards."""
    import tstar.lab.sweep as sweeping
    from tstar.lab.sweep import engine, shared

    study = tiny("temperature = [1, 4]")
    do(study, tmp_path / "memory.db", inline())
    loaded = []
    original = shared.load
    monkeypatch.setattr(shared, "load", lambda path: loaded.append(path) or original(path))
    monkeypatch.setattr(engine, "LocalEngine", lambda *_: inline())
    sweeping.run_study(study, tmp_path / "mapped.db")
    assert loaded
    mine, other = rows_of(tmp_path / "memory.db"), rows_of(tmp_path / "mapped.db")
    assert len(mine) == 2
    for key, row in mine.items():
        for name in ("val_accuracy", "test_accuracy", "nll", "ece", "train_loss", "curves"):
            assert row[name] == other[key][name]
    assert not list(tmp_path.glob("*.data*"))
