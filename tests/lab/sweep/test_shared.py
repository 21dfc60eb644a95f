"""One copy of the data for all workers."""

from tests.lab.sweep.small import do, rows_of, tiny


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
