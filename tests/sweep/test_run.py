"""The sweep's logic on an engine without processes: what is missing is done, once, and no more."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tstar.errors import TstarError
from tstar.sweep.estimate import estimate, kind_of
from tstar.sweep.plan import make_plan
from tstar.sweep.run import ATTEMPTS, run_sweep
from tstar.sweep.store import Store
from tstar.sweep.study import parse_study


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


def rows_of(path):
    with Store(path) as store:
        return {row["key"]: row for row in store.rows()}


def do(study, path, engine, **options):
    with Store(path, create=True) as store:
        return run_sweep(make_plan(study, store), store, engine, **options)


def tiny(extra="", **fields):
    fields = {"epochs": 1} | fields
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return parse_study(
        f"csg = false\n[training]\n{lines}\n"
        f'[[grid]]\ndataset = "digits"\nmodel = "mlp"\nnum_features = 8\n{extra}'
    )


def test_all_runs_are_done_and_a_second_sweep_does_nothing(study, path, inline):
    tally = do(study, path, inline())
    assert (tally.done, tally.failed, tally.finished) == (8, 0, 8)
    before = rows_of(path)
    assert len(before) == 8
    for row in before.values():
        assert (row["status"], row["attempts"], row["num_classes"]) == ("done", 1, 10)
        assert 0 < row["test_accuracy"] <= 1
        assert row["num_features"] == 8
        assert len(row["data_checksum"]) == 64
        assert len(json.loads(row["curves"])["val_accuracy"]) == row["epochs"] == 2
        assert {"torch", "python", "tstar", "numpy"} <= set(json.loads(row["versions"]))
        assert row["seconds"] > 0
        assert row["images_per_second"] > 0
    engine = inline()
    tally = do(study, path, engine)
    assert (engine.executed, tally.before, tally.done) == ([], 8, 0)
    assert rows_of(path) == before


def test_an_interrupted_sweep_does_only_what_is_missing(study, path, inline):
    first = inline()
    do(study, path, first, max_runs=3)
    assert len(first.executed) == 3
    assert {row["status"] for row in rows_of(path).values()} == {"done"}
    second = inline()
    tally = do(study, path, second)
    assert not set(first.executed) & set(second.executed)
    assert (tally.before, tally.done) == (3, 5)


def test_a_keyboard_interrupt_gives_back_what_is_under_way(study, path, inline):
    class Interrupted(inline):
        def collect(self, timeout):
            if len(self.executed) == 3:
                raise KeyboardInterrupt
            return super().collect(timeout)

    engine = Interrupted(slots=2)
    with pytest.raises(KeyboardInterrupt):
        do(study, path, engine)
    assert engine.closed
    assert [row["status"] for row in rows_of(path).values()] == ["done"] * 3


def test_the_order_and_the_number_of_slots_do_not_change_any_result(study, path, tmp_path, inline):
    do(study, path, inline(slots=1))
    shuffled = dataclasses.replace(study, specs=tuple(reversed(study.specs)))
    do(shuffled, tmp_path / "other.db", inline(slots=3))
    mine, other = rows_of(path), rows_of(tmp_path / "other.db")
    assert set(mine) == set(other)
    for key, row in mine.items():
        for name in ("val_accuracy", "test_accuracy", "nll", "ece", "train_loss", "curves"):
            assert row[name] == other[key][name]


def test_temperatures_and_norms_make_a_difference(study, path, inline):
    do(study, path, inline())
    rows = rows_of(path).values()
    same = [r for r in rows if r["seed"] == 0 and r["num_features"] == 8]
    assert len({r["nll"] for r in same}) == 4
    assert {(r["norm"], r["temperature"]) for r in same} == {
        ("batch", 1.0), ("batch", 4.0), ("none", 1.0), ("none", 4.0)
    }  # fmt: skip


def test_the_fixed_temperature_is_what_temper_does(path, inline):
    from torch import nn

    import tstar
    from tstar.data import load
    from tstar.models import build
    from tstar.training import Config, train

    do(tiny("temperature = 3\nseed = 5"), path, inline())
    (row,) = rows_of(path).values()
    model = nn.Sequential(nn.Flatten(), build("mlp", 10, num_features=8, in_channels=64, seed=5))
    tempered = tstar.temper(model, 3.0, norm="batch")
    result = train(tempered, load("digits"), Config(epochs=1), seed=5)
    assert (row["val_accuracy"], row["nll"]) == (result.val_accuracy, result.nll)


def test_a_diverging_run_is_a_result(path, inline):
    study = tiny("temperature = 1", lr=1e30)
    tally = do(study, path, inline())
    (row,) = rows_of(path).values()
    assert (tally.diverged, tally.failed, row["status"]) == (1, 0, "diverged")
    assert row["val_accuracy"] is None
    assert row["error"] is None
    engine = inline()
    do(study, path, engine)
    assert engine.executed == []


def test_a_failing_run_is_recorded_and_the_others_go_on(study, path, inline, monkeypatch):
    import tstar.models.fitting as module

    bad = make_plan(study, None).specs[3]
    original = module.fitting_model

    def broken(name, data, num_features, seed, **options):
        if (num_features, seed) == (bad.num_features, bad.seed) and broken.armed:
            raise RuntimeError("boom")
        return original(name, data, num_features, seed, **options)

    broken.armed = False
    with Store(path, create=True) as store:
        plan = make_plan(study, store)
        monkeypatch.setattr(module, "fitting_model", broken)
        broken.armed = True
        tally = run_sweep(plan, store, inline())
    assert (tally.done, tally.failed) == (4, 4)
    failed = [row for row in rows_of(path).values() if row["status"] == "failed"]
    assert all("boom" in row["error"] and "Traceback" in row["error"] for row in failed)
    broken.armed = False
    tally = do(study, path, inline())
    assert (tally.done, tally.before) == (4, 4)
    assert {row["attempts"] for row in rows_of(path).values()} == {1, 2}


def test_a_lost_run_is_started_again_but_not_for_ever(path, inline):
    study = tiny("temperature = 1")
    tally = do(study, path, inline(lose=ATTEMPTS - 1))
    (row,) = rows_of(path).values()
    assert (tally.retried, tally.done, row["attempts"]) == (ATTEMPTS - 1, 1, ATTEMPTS)
    other = path.with_name("other.db")
    tally = do(study, other, inline(lose=100))
    (row,) = rows_of(other).values()
    assert (tally.failed, row["status"], row["error"]) == (1, "failed", "gone")


def test_two_sweeps_share_the_work(study, path, inline):
    class Nosy(inline):
        """While it works, another sweep on the same store does three of the runs."""

        def collect(self, timeout):
            if not self.executed:
                Nosy.other = inline()
                do(study, path, Nosy.other, max_runs=3)
            return super().collect(timeout)

    engine = Nosy()
    tally = do(study, path, engine)
    assert (tally.done, tally.theirs) == (5, 3)
    assert not set(engine.executed) & set(Nosy.other.executed)
    assert {row["attempts"] for row in rows_of(path).values()} == {1}


def test_a_teacher_is_trained_first_once_and_its_cost_is_counted(path, inline):
    study = tiny(
        'method = ["kd", "logit-standardization", "ours-cn"]\nseeds = 2', teacher_features=16
    )
    engine = inline(slots=2)
    tally = do(study, path, engine)
    assert (tally.total, tally.done, tally.failed) == (8, 8, 0)
    rows = rows_of(path)
    teachers = {key: row for key, row in rows.items() if row["role"] == "teacher"}
    assert sorted(row["seed"] for row in teachers.values()) == [0, 1]
    for row in teachers.values():
        assert (row["num_features"], row["temperature"], row["norm"]) == (16, 1.0, "none")
        assert path.with_name("runs.db.weights").joinpath(row["key"] + ".pt").exists()
    for row in rows.values():
        if row["method"] in ("kd", "logit-standardization"):
            assert teachers[row["teacher"]]["seed"] == row["seed"]
            assert row["trainings"] == 2
            assert engine.executed.index(row["teacher"]) < engine.executed.index(row["key"])
        elif row["role"] == "run":
            assert (row["teacher"], row["trainings"]) == (None, 1)
    # Without its weights a teacher is done again; with them it is not.
    key = next(iter(teachers))
    path.with_name("runs.db.weights").joinpath(key + ".pt").unlink()
    again = inline()
    do(study, path, again)
    assert again.executed == [key]


def test_students_of_a_diverged_teacher_fail_with_the_reason(path, inline):
    study = tiny('method = "kd"', teacher_features=16, lr=1e30)
    tally = do(study, path, inline())
    assert (tally.diverged, tally.failed) == (1, 1)
    failed = next(row for row in rows_of(path).values() if row["status"] == "failed")
    assert "Its teacher" in failed["error"]


def test_a_searching_method_is_one_run_with_the_cost_of_all(path, inline):
    study = parse_study(
        'csg = false\n[training]\nepochs = 1\n[[grid]]\ndataset = "digits"\nmodel = "mlp"\nnum_features = 8\n'
        'method = "temperature-check"\n[options.temperature-check]\npoints = 3'
    )
    do(study, path, inline())
    (row,) = rows_of(path).values()
    trials = json.loads(row["extra"])["trials"]
    assert row["trainings"] == len(trials) == 3
    assert row["val_accuracy"] == max(score for _, score in trials)
    assert any(math.isclose(row["temperature"], T, rel_tol=1e-6) for T, _ in trials)


def test_methods_record_the_temperature_that_they_trained_at(path, inline):
    import tstar

    study = tiny('method = ["ours-cn", "sqrt-m", "default", "temperature-scaling", "insert-ln"]')
    do(study, path, inline())
    found = {row["method"]: (row["temperature"], row["norm"]) for row in rows_of(path).values()}
    assert found["ours-cn"] == (pytest.approx(tstar.temperature(8, 10)), "batch")
    assert found["sqrt-m"] == (pytest.approx(math.sqrt(8)), "none")
    assert found["default"] == (1.0, "none")
    assert found["temperature-scaling"] == (1.0, "none")
    assert found["insert-ln"] == (None, "none")


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (lambda: tiny('method = "ours"'), "Unknown method 'ours'; did you mean"),
        (lambda: tiny('method = "kd"'), "teacher_features must be given"),
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
    ],
)
def test_what_cannot_work_is_said_before_the_first_run(study, message):
    with pytest.raises(TstarError, match=message):
        make_plan(study(), None)


def test_a_data_set_whose_labels_have_gaps_is_refused(tmp_path):
    x, y = np.random.default_rng(0).random((60, 4), np.float32), np.arange(60) % 3 * 2
    np.savez(tmp_path / "gaps.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    study = parse_study('csg=false\n[[grid]]\ndataset="gaps.npz"\nmodel="mlp"\ntemperature=1\n')
    with pytest.raises(TstarError, match="label"):
        make_plan(study, None, data_root=str(tmp_path))


def test_other_data_are_other_runs(tmp_path, inline):
    path = tmp_path / "runs.db"
    study = parse_study(
        'csg=false\n[training]\nepochs=1\n[[grid]]\ndataset="mine.npz"\nmodel="mlp"\nnum_features=4\n'
        "temperature=1\n"
    )
    from tstar.sweep.execute import load_data

    for seed in (0, 1):
        random = np.random.default_rng(seed)
        x, y = random.random((60, 4), np.float32), np.arange(60) % 3
        np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
        load_data.cache_clear()
        with Store(path, create=True) as store:
            plan = make_plan(study, store, data_root=str(tmp_path))
            assert len(plan.todo) == 1
            run_sweep(plan, store, inline(), data_root=str(tmp_path))
    assert len({row["data_checksum"] for row in rows_of(path).values()}) == 2


def test_data_that_change_under_a_running_sweep_are_noticed(study, path, inline):
    with Store(path, create=True) as store:
        plan = make_plan(study, store)
        wrong = dataclasses.replace(
            plan, specs=(dataclasses.replace(plan.specs[0], data_checksum="0" * 64),)
        )
        tally = run_sweep(wrong, store, inline())
    assert tally.failed == 1
    (row,) = rows_of(path).values()
    assert "checksum differs" in row["error"]


def test_csg_is_computed_once_and_kept(path, inline, monkeypatch):
    import tstar.difficulty

    calls = []
    monkeypatch.setattr(
        tstar.difficulty, "csg", lambda data, seed: calls.append(len(data.y_train)) or 1.25
    )
    study = dataclasses.replace(tiny("temperature = [1, 2]"), csg=True)
    do(study, path, inline(), max_runs=1)
    do(study, path, inline())
    assert len(calls) == 1
    assert {row["csg"] for row in rows_of(path).values()} == {1.25}


def test_the_estimate_grows_with_the_length_of_the_runs():
    short, long = (make_plan(tiny("temperature = [1, 2]", epochs=n), None) for n in (1, 100))
    assert {kind_of(s) for s in short.specs} == {kind_of(s) for s in long.specs}
    one, many = estimate(short), estimate(long)
    assert (one.runs, one.probed, one.kinds) == (2, 1, 1)
    assert many.seconds > 5 * one.seconds


def test_a_result_that_the_store_refuses_is_not_counted(path, inline):
    """Its claim was taken over meanwhile: what counts is what is stored."""

    class Overtaken(inline):
        def collect(self, timeout):
            job = self.jobs[0]
            with Store(path, lease=0.0) as other:
                assert other.claim(job.spec)
                assert other.finish(job.spec.key, "done", {"val_accuracy": 0.123})
            return super().collect(timeout)

    tally = do(tiny("temperature = 1"), path, Overtaken())
    (row,) = rows_of(path).values()
    assert (tally.done, tally.theirs, tally.finished) == (0, 1, 1)
    assert row["val_accuracy"] == 0.123


def test_a_csg_that_the_study_gives_is_used_and_kept(path, inline):
    study = tiny('method = "ours-csg"', csg=8.0)
    tally = do(study, path, inline())
    (row,) = rows_of(path).values()
    assert (tally.done, row["csg"]) == (1, 8.0)
    import tstar

    assert row["temperature"] == pytest.approx(
        tstar.temperature(8, 10, 8.0, variant="csg"), rel=1e-6
    )


def test_workers_map_one_copy_of_the_data(tmp_path, inline, monkeypatch):
    """The numbers are those of the copy in memory, bit for bit, and the folder is gone afterwards."""
    import tstar.sweep as sweeping
    from tstar.sweep import engine, shared

    study = tiny("temperature = [1, 4]")
    do(study, tmp_path / "memory.db", inline())
    loaded = []
    original = shared.load
    monkeypatch.setattr(shared, "WORTHWHILE", 1)
    monkeypatch.setattr(shared, "load", lambda path: loaded.append(path) or original(path))
    monkeypatch.setattr(engine, "LocalEngine", lambda *_: inline())
    sweeping.sweep(study, tmp_path / "mapped.db")
    assert loaded
    mine, other = rows_of(tmp_path / "memory.db"), rows_of(tmp_path / "mapped.db")
    assert len(mine) == 2
    for key, row in mine.items():
        for name in ("val_accuracy", "test_accuracy", "nll", "ece", "train_loss", "curves"):
            assert row[name] == other[key][name]
    assert not list(tmp_path.glob("*.data*"))
