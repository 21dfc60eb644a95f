"""The sweep's logic on an engine without processes: what is missing is done, once, and no more."""

import dataclasses
import json

import pytest

import tstar.lab.sweep as sweeping
from tests.lab.sweep.parts import PARTS
from tests.lab.sweep.small import do, rows_of, tiny
from tstar.errors import TstarError
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import ATTEMPTS, run_sweep
from tstar.lab.sweep.store import Store, owned
from tstar.lab.sweep.study import load_study
from tstar.lab.sweep.transfer import load_runs


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


def test_a_failing_run_is_recorded_and_the_others_go_on(study, path, inline, monkeypatch):
    import tstar.lab.sweep.materials as module

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
    assert (tally.retried, tally.done, len(rows_of(path))) == (ATTEMPTS - 1, 1, 1)
    other, said = path.with_name("other.db"), []
    tally = do(study, other, inline(lose=100), say=said.append)
    # Not failed: nothing is stored, and the next sweep tries it again.
    assert (tally.failed, tally.requeued, rows_of(other)) == (0, 1, {})
    assert len(said) == ATTEMPTS
    assert said[0].endswith("gone")
    assert do(study, other, inline()).done == 1


def test_out_of_memory_is_tried_again_and_an_error_is_not(path, inline, monkeypatch):
    import torch

    study, left = tiny("temperature = 1"), [torch.OutOfMemoryError("CUDA out of memory")]

    def build(*_):
        raise left.pop() if left else ValueError("wrong")

    plan = make_plan(study, None)
    monkeypatch.setattr("tstar.lab.sweep.execute.build_model", build)
    with Store(path, create=True) as store:
        tally = run_sweep(plan, store, inline())
    (row,) = rows_of(path).values()
    assert (tally.retried, tally.failed, row["status"]) == (1, 1, "failed")
    assert "ValueError: wrong" in row["error"]


def test_data_are_forgotten_after_the_last_run_that_needs_them(path, inline):
    study = tiny("temperature = [1, 4]\nsamples = [200, 300]")

    class Watched(inline):
        def forget(self, data):
            super().forget(data)
            self.at.append((len(self.executed), data.samples))

    engine = Watched()
    engine.at = []
    do(study, path, engine)
    last = {s.samples: n for n, s in enumerate(make_plan(study, None).specs, 1)}
    assert sorted(engine.at) == sorted((n, samples) for samples, n in last.items())


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
    # Without its weights, or with an empty file, a teacher is done again if a student needs it.
    key = next(iter(teachers))
    student = next(row["key"] for row in rows.values() if row["teacher"] == key)
    weights = path.with_name("runs.db.weights").joinpath(key + ".pt")
    for break_it in (weights.unlink, lambda: weights.write_bytes(b"")):
        break_it()
        again = inline()
        do(study, path, again)
        assert again.executed == []
        with Store(path) as store:
            store.insert(rows[student] | {"status": "failed"})
        do(study, path, again)
        assert again.executed == [key, student]


def test_students_of_a_diverged_teacher_fail_with_the_reason(path, inline):
    study = tiny('method = "kd"', teacher_features=16, lr=1e30)
    tally = do(study, path, inline())
    assert (tally.diverged, tally.failed) == (1, 1)
    again = inline()
    do(study, path, again)
    assert again.executed == []  # it would diverge again
    failed = next(row for row in rows_of(path).values() if row["status"] == "failed")
    assert "Its teacher" in failed["error"]


def test_what_ended_is_stored_though_the_commit_is_interrupted(study, path, inline, monkeypatch):
    put, calls = Store.put, []

    def interrupted(self, *args, **keywords):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        put(self, *args, **keywords)

    monkeypatch.setattr(Store, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        do(study, path, inline())
    assert {row["status"] for row in rows_of(path).values()} == {"done"}
    assert len(rows_of(path)) == 2


def test_workers_stop_before_another_sweep_may_own_the_store(study, path, inline, monkeypatch):
    class Watched(inline):
        def close(self):
            if not self.closed:
                with pytest.raises(TstarError, match="One sweep at a time"), owned(path):
                    pass
            super().close()

    engine = Watched()
    monkeypatch.setattr("tstar.lab.sweep.run.make_engine", lambda *_: engine)
    sweeping.run_study(study, path, max_runs=1)
    assert engine.closed


def test_several_studies_are_one_queue(path, inline, monkeypatch):
    engine = inline(slots=3)
    monkeypatch.setattr("tstar.lab.sweep.engine.LocalEngine", lambda *_: engine)
    first, second = tiny("temperature = [1, 2]"), tiny("temperature = [2, 4]")
    studies = [dataclasses.replace(s, name=n) for s, n in ((first, "one"), (second, "two"))]
    tally = sweeping.run_study(studies, path)
    assert (tally.total, tally.done, len(engine.executed)) == (3, 3, 3)
    for name, temperatures in (("one", [1, 2]), ("two", [2, 4])):
        assert sorted(load_runs(path, study=name)["temperature"]) == temperatures


def test_one_name_for_two_parts_is_refused(folder, inline, monkeypatch):
    monkeypatch.setattr("tstar.lab.sweep.engine.LocalEngine", lambda *_: inline())
    (folder / "other").mkdir()
    for name in ("parts.py", "study.toml"):
        (folder / "other" / name).write_bytes((folder / name).read_bytes())
    studies = [folder / "study.toml", folder / "other" / "study.toml"]
    with pytest.raises(TstarError, match="must be the same part in all studies"):
        sweeping.run_study(studies, folder / "runs.db")


def test_a_study_keeps_what_it_still_asks_for_and_leaves_the_rest(path, inline):
    """It grows, changes and is changed back; what it asks for is there, whoever trained it and when."""

    def swept(temperatures, **options):
        study = tiny(f"temperature = {temperatures}")
        do(study, path, inline(), name="mine", **options)
        return sorted(load_runs(path, study="mine")["temperature"])

    assert swept([1, 2]) == swept([1, 2]) == [1, 2]
    assert swept([1, 2, 4]) == [1, 2, 4]
    assert swept([2, 8]) == [2, 8]
    assert swept([1, 2]) == [1, 2]  # nothing is trained, and 8 was trained last
    assert swept([8], part=True) == [8]


def test_runs_on_data_that_changed_are_no_longer_asked_for(folder, inline):
    for seed in (0, 1):
        text = PARTS.replace("default_rng(0)", f"default_rng({seed})")
        (folder / "parts.py").write_text(text, encoding="utf-8")
        study = load_study(folder / "study.toml")
        do(study, folder / "runs.db", inline(), name="own")
        assert len(load_runs(folder / "runs.db", study="own")) == 2
        assert len(load_runs(folder / "runs.db")) == 2 + 2 * seed
