"""What is to do: the grid minus what is done, and what cannot work said before the first run."""

import dataclasses

import numpy as np
import pytest

from tests.lab.sweep.small import do, rows_of, tiny
from tstar.errors import TstarError
from tstar.lab.sweep import materials
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (lambda: tiny('method = "ours"'), "Unknown method 'ours'; did you mean"),
        (lambda: tiny('method = "kd"'), "teacher_features, its M, must be given"),
        (lambda: tiny('method = "temperature-scaling"', val_fraction=0), "val_fraction > 0"),
        (
            lambda: parse_study('[[grid]]\ndataset="digit"\nmodel="mlp"\ntemperature=1\n'),
            "did you mean 'digits'",
        ),
        (
            lambda: parse_study(
                'csg=false\n[[grid]]\ndataset="digits"\nmodel="resnet1"\ntemperature=1\n'
            ),
            "did you mean 'resnet10'",
        ),
        (
            lambda: tiny("temperature = 1", scenario="finetune", weights="gone.pt"),
            r"gone\.pt must be the weights of a model, but reading it failed",
        ),
    ],
)
def test_what_cannot_work_is_said_before_the_first_run(study, message):
    with pytest.raises(TstarError, match=message):
        make_plan(study(), None)


def test_weights_are_looked_for_once_where_a_run_needs_them(path, inline, monkeypatch):
    study = tiny("temperature = [1, 2]", scenario="finetune", weights="mine.pt")
    looked = []
    monkeypatch.setattr(materials, "load_weights", lambda model, path: looked.append(path.name))
    do(study, path, inline())
    assert looked == ["mine.pt"] * 3  # before the first run, and in each of the two
    with Store(path) as store:
        make_plan(study, store)
    assert len(looked) == 3  # all runs are done


def test_other_data_are_other_runs(tmp_path, inline):
    path = tmp_path / "runs.db"
    study = parse_study(
        'csg=false\n[training]\nepochs=1\n[[grid]]\ndataset="mine.npz"\nmodel="mlp"\nnum_features=4\n'
        "temperature=1\n"
    )
    for seed in (0, 1):
        random = np.random.default_rng(seed)
        x, y = random.random((60, 4), np.float32), np.arange(60) % 3
        np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        materials.load_data.cache_clear()
        with Store(path, create=True) as store:
            plan = make_plan(study, store, data_root=str(tmp_path))
            assert len(plan.todo) == 1
            run_sweep(plan, store, inline())
    assert len({row["data_checksum"] for row in rows_of(path).values()}) == 2


def test_csg_is_computed_once_and_kept(path, inline, monkeypatch):
    import tstar.difficulty

    calls = []
    monkeypatch.setattr(
        tstar.difficulty, "csg", lambda data, seed: calls.append((len(data.y_train), seed)) or 1.25
    )
    study = dataclasses.replace(tiny("temperature = [1, 2]"), csg=True)
    do(study, path, inline(), max_runs=1)
    do(study, path, inline())
    assert calls == [(1438, 0)]  # the same draw as tstar.csg takes by default
    assert {row["csg"] for row in rows_of(path).values()} == {1.25}


def test_a_csg_that_the_study_gives_is_used_and_kept(path, inline):
    study = tiny('method = "ours-csg"', csg=8.0)
    tally = do(study, path, inline())
    (row,) = rows_of(path).values()
    assert (tally.done, row["csg"]) == (1, 8.0)
    import tstar

    assert row["temperature"] == pytest.approx(
        tstar.temperature(8, 10, 8.0, variant="csg"), rel=1e-6
    )
