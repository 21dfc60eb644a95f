"""From a store to records: what is grouped, what is chosen, what is recommended."""

import math
import shlex
from pathlib import Path

import pytest

from tests.report.planted import GRID, TASKS
from tstar import TstarError
from tstar.formula.coefficients import get
from tstar.formula.equation import temperature
from tstar.report.records import load
from tstar.sweep import Store, export


def test_every_condition_is_a_sweep(store):
    records = load(store)
    assert len(records.sweeps) == len(TASKS) * 2 * 2
    assert all(sweep.temperatures == GRID for sweep in records.sweeps)
    assert len(records.with_norm("batch")) == len(TASKS) * 2
    assert len(records.pairs()) == len(TASKS) * 2
    for plain, bn in records.pairs():
        assert (plain.facts["norm"], bn.facts["norm"]) == ("none", "batch")
        assert {**plain.facts, "norm": 0} == {**bn.facts, "norm": 0}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_gives_the_same_records(store, tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    with Store(store) as opened:
        export(opened, tmp_path / f"runs.{kind}")
    first, second = load(store), load(tmp_path / f"runs.{kind}")
    assert first.sweeps == second.sweeps
    assert first.checksum != second.checksum


def test_the_checksum_is_of_the_file(store):
    import hashlib

    assert load(store).checksum == hashlib.sha256(store.read_bytes()).hexdigest()


def test_validation_chooses_the_best_temperature(make_store):
    def swap(rows):
        for spec, result in rows:
            result["val_accuracy"] = 0.95 if spec.temperature == 2.0 else 0.1
        return rows

    store = make_store(change=swap, tasks=TASKS[:1], widths=(64,), seeds=2)
    records = load(store)
    assert records.chosen_on == "val"
    assert all(sweep.temperatures[sweep.best] == 2.0 for sweep in records.sweeps)


def test_without_validation_the_metric_itself_chooses(make_store):
    def drop(rows):
        for _, result in rows:
            result["val_accuracy"] = None
        return rows

    store = make_store(change=drop, tasks=TASKS[:1], widths=(64,), seeds=1, noise=0.0)
    records = load(store)
    assert records.chosen_on == "test"
    # The planted peaks are 0.5·8 = 4 and 0.8·8 = 6.4, whose nearest neighbor in ln T is 8.
    best = {s.facts["norm"]: s.temperatures[s.best] for s in records.sweeps}
    assert best == {"none": 4.0, "batch": 8.0}


def test_recommended_is_the_formula_of_the_facts(store):
    for sweep in load(store, variant="csgcn").with_norm("batch"):
        facts = sweep.facts
        want = temperature(
            facts["num_features"], facts["num_classes"], facts["csg"], variant="csgcn"
        )
        assert sweep.recommended == want
    assert all(
        sweep.recommended == temperature(sweep.facts["num_features"])
        for sweep in load(store, variant="base").sweeps
    )


def test_by_default_the_advice_for_the_training_is_judged(store):
    for sweep in load(store).with_norm("batch"):
        facts = sweep.facts
        names = ("lr", "optimizer", "steps", "momentum", "batch_size")
        told = {name: facts[name] for name in names}
        want = temperature(facts["num_features"], facts["num_classes"], **told)
        assert sweep.recommended == pytest.approx(want)
        told["batch_size"] *= 4  # it counts
        other = temperature(facts["num_features"], facts["num_classes"], **told)
        assert sweep.recommended != pytest.approx(other)


def test_an_unknown_scenario_is_named_with_its_run(make_store):
    import sqlite3

    path = make_store(tasks=TASKS[:1], widths=(64,), seeds=1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET scenario = 'probe' WHERE rowid = 3")
        (key,) = connection.execute("SELECT key FROM runs WHERE rowid = 3").fetchone()
    connection.close()
    with pytest.raises(TstarError, match=f"run {key} has 'probe' as its scenario"):
        load(path)


def test_interpolation_is_linear_in_ln_t(store):
    sweep = load(store).sweeps[0]
    a, b = sweep.mean(2), sweep.mean(3)
    assert sweep.at(5.0) == pytest.approx(a + (b - a) * math.log(5 / 4) / math.log(8 / 4))
    assert sweep.at(4.0) == pytest.approx(a)


TRAINED = "sgd, lr 0.1, 40 steps"


def test_titles_say_how_it_was_trained(make_store):
    records = load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, lr=(0.1, 0.01)))
    titles = {sweep.title for sweep in records.sweeps}
    assert titles == {f"easy · resnet10 · sgd, lr {lr}, 40 steps" for lr in (0.1, 0.01)}
    assert len(records.environments("batch")) == 2


def test_what_differs_anywhere_is_said_everywhere(make_store):
    """Weight decay has two values on one data set alone: the other one's titles must have it too."""
    from dataclasses import replace

    def change(rows):
        more = [
            (replace(spec, config=replace(spec.config, weight_decay=0.01)), result)
            for spec, result in rows
            if spec.dataset == "easy"
        ]
        return rows + more

    store = make_store(tasks=TASKS[:2], widths=(64,), seeds=1, change=change)
    settings = {(s.facts["dataset"], s.setting) for s in load(store).sweeps}
    decay = "sgd, lr 0.1, weight decay {}, 40 steps"
    assert settings == {
        ("easy", decay.format("0.01")),
        ("easy", decay.format("0.0005")),
        (TASKS[1][0], decay.format("0.0005")),
    }


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        # The length that data sets share says it; both where neither follows from the other.
        ({"easy": [(10, 40)], "hard": [(5, 40)]}, {"40 steps"}),
        ({"easy": [(10, 40)], "hard": [(10, 80)]}, {"10 epochs"}),
        (
            {"easy": [(10, 40), (10, 80), (20, 40)]},
            {"10 epochs, 40 steps", "10 epochs, 80 steps", "20 epochs, 40 steps"},
        ),
    ],
)
def test_a_length_is_said_once(lengths, said):
    from tests.fitting.planted import curve
    from tstar.report.records import _settings

    found = [
        curve([0.5, 0.9, 0.5], dataset=name, epochs=epochs, steps=steps)
        for name, pairs in lengths.items()
        for epochs, steps in pairs
    ]
    assert set(_settings(found)) == said


@pytest.mark.parametrize(
    ("versions", "titles"),
    [
        # One version of each part: the name says it all, also where conditions share another part.
        (
            (("augment", True, "a" * 16), ("augment", "./kit.py:noise", "b" * 16)),
            {f"easy · resnet10 · {TRAINED}, augment {n}" for n in ("1", "./kit.py:noise")},
        ),
        ((("loss", "./kit.py:loss", "a" * 16),), {f"easy · resnet10 · {TRAINED}"}),
        (
            (("loss", "./kit.py:loss", "a" * 16), ("loss", "./kit.py:loss", "b" * 16)),
            {f"easy · resnet10 · sgd, lr 0.1, source {c * 16}, 40 steps" for c in "ab"},
        ),
    ],
)
def test_parts_are_named_and_their_hashes_told_where_versions_differ(make_store, versions, titles):
    from dataclasses import replace

    def change(rows):
        return [
            (replace(spec, config=replace(spec.config, **{field: part}), source=source), result)
            for spec, result in rows
            for field, part, source in versions
        ]

    store = make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change)
    assert {sweep.title for sweep in load(store).sweeps} == titles


def test_a_diverged_run_counts_as_chance(make_store):
    records = load(make_store(diverged=(0, 1, 2), tasks=TASKS[:1], widths=(64,)))
    sweep = next(s for s in records.sweeps if s.facts["norm"] == "none")
    assert sweep.mean(0) == pytest.approx(1 / TASKS[0][2])


def test_standard_error_needs_two_seeds(make_store):
    one = load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1)).sweeps[0]
    assert one.standard_error(0) is None


def test_standard_error_is_the_sample_s(store):
    sweep = load(store).sweeps[0]
    x = sweep.seen(1)
    mean = sum(x) / len(x)
    want = math.sqrt(sum((v - mean) ** 2 for v in x) / (len(x) - 1) / len(x))
    assert sweep.standard_error(1) == pytest.approx(want)


def test_bad_input_is_refused(store, tmp_path):
    with pytest.raises(TstarError, match="does not exist"):
        load(tmp_path / "nothing.db")
    with pytest.raises(TstarError, match="metric 'loss'"):
        load(store, metric="loss")
    with pytest.raises(TstarError, match=r"variant|coefficient"):
        load(store, variant="cns")
    Store(tmp_path / "empty.db", create=True).close()
    with pytest.raises(TstarError, match="nothing to report"):
        load(tmp_path / "empty.db")


def test_commands_name_the_files_as_they_were_given(make_store, tmp_path, monkeypatch):
    """From where the report was made they run again; the base name alone does not."""
    (tmp_path / "work").mkdir()
    make_store("work/my runs.db", tasks=TASKS[:1], widths=(64,), seeds=1)
    get("cn").save(tmp_path / "work" / "mine.json")
    monkeypatch.chdir(tmp_path)
    records = load("work/my runs.db", coefficients="work/mine.json")
    words = shlex.split(records.command("report"))
    assert words[2:] == ["work/my runs.db", "--metric", "test", "--coefficients", "work/mine.json"]
    assert "--runs 'work/my runs.db'" in records.command("paper", "datasets")
    assert load(Path(words[2]), coefficients=Path(words[-1])).options == records.options
