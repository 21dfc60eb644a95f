"""From a store to records: what is grouped, what is chosen, which T is judged."""

import hashlib
import shlex
from dataclasses import replace

import pytest

from tests.lab.report.planted import GRID, TASKS
from tstar import TstarError
from tstar.formula import get, temperature
from tstar.lab.report.catalogue import get_figure
from tstar.lab.report.law import law, of_paper
from tstar.lab.report.records import load
from tstar.lab.sweep import Store, export

TRAINED = {"optimizer": "sgd", "lr": 0.1, "steps": 7800, "batch_size": 128}


def test_every_condition_is_a_sweep(store):
    records = load(store)
    assert len(records.sweeps) == len(TASKS) * 2 * 2
    assert all(sweep.temperatures == GRID for sweep in records.sweeps)
    assert len(records.with_norm("batch")) == len(TASKS) * 2
    assert len(records.pairs()) == len(TASKS) * 2
    for plain, bn in records.pairs():
        assert (plain.facts["norm"], bn.facts["norm"]) == ("none", "batch")
        assert {**plain.facts, "norm": 0} == {**bn.facts, "norm": 0}
    assert records.checksum == hashlib.sha256(store.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_gives_the_same_records(store, tmp_path, kind):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    export(store, tmp_path / f"runs.{kind}")
    first, second = load(store), load(tmp_path / f"runs.{kind}")
    for one, two in zip(first.sweeps, second.sweeps, strict=True):
        assert one.facts == two.facts
        assert one.curve.test.tolist() == two.curve.test.tolist()
    assert [s.title for s in first.sweeps] == [s.title for s in second.sweeps]


def test_validation_chooses_the_best_temperature(make_store):
    def swap(rows):
        for spec, result in rows:
            result["val_accuracy"] = 0.95 if spec.temperature == 2.0 else 0.1
        return rows

    records = load(make_store(change=swap, tasks=TASKS[:1], widths=(64,), seeds=2))
    assert records.chosen_on == "val"
    assert all(sweep.best == 2.0 for sweep in records.sweeps)


def test_without_validation_the_metric_itself_chooses(make_store):
    def drop(rows):
        return [(spec, result | {"val_accuracy": None}) for spec, result in rows]

    store = make_store(change=drop, tasks=TASKS[:1], widths=(64,), seeds=1, noise=0.0)
    records = load(store)
    assert records.chosen_on == "test"
    # The planted peaks are 0.5·8 = 4 and 0.8·8 = 6.4, whose nearest neighbor in ln T is 8.
    assert {s.facts["norm"]: s.best for s in records.sweeps} == {"none": 4.0, "batch": 8.0}


def test_the_law_is_that_of_the_core():
    how = TRAINED | {"num_features": 512, "num_classes": 10}
    assert law(how) == pytest.approx(12.2, abs=0.05)  # printed in tstar/law.py
    assert law(how | {"optimizer": "adamw", "lr": 1e-3}) == 2.0
    assert law(how | {"batch_size": 512}) == pytest.approx(law(how) / 4**0.25)


@pytest.mark.parametrize(
    "facts",
    [
        {"loss": "./kit.py:focal"},  # of one's own
        {"optimizer": "lion"},
        {"optimizer": "./kit.py:mine"},
        {"lr": None},
        {"num_classes": None},
        {"steps": 10_000_000},  # lr·steps beyond all that was measured
    ],
)
def test_the_law_is_silent_where_it_was_not_measured(facts):
    assert law(TRAINED | {"num_features": 512, "num_classes": 10} | facts) is None


def test_a_variant_or_a_set_of_one_s_own_is_judged_instead(store):
    for sweep in load(store, variant="csgcn").with_norm("batch"):
        facts = sweep.facts
        known = (facts["num_features"], facts["num_classes"], facts["csg"])
        assert sweep.law == temperature(*known, variant="csgcn")
    mine = replace(get("base"), name="mine", beta=3.0)
    records = load(store, variant=mine)
    assert records.sweeps[0].law == pytest.approx(mine.alpha * 8 + 3.0)
    assert records.formula == "coefficient set 'mine'"
    assert of_paper({"num_features": 64}, get("csg")) is None  # no csg


def test_runs_counted_in_steps_are_titled_by_them(make_store):
    """The same steps are other epochs on another data set: one way of training has one title."""

    def change(rows):
        counted = []
        for spec, result in rows:
            spec = replace(spec, epochs=1, steps=40)
            counted.append((spec, result | {"epochs": 3 if spec.dataset == "easy" else 6}))
        return counted

    records = load(make_store(widths=(64,), seeds=1, change=change))
    assert {s.title.partition(" · ")[2] for s in records.sweeps} == {
        "resnet10 · sgd, lr 0.1, 40 steps"
    }
    assert get_figure("difficulty").data(records)["panel"].nunique() == 2 * len(TASKS)


def test_what_differs_anywhere_is_said_everywhere(make_store):
    """Weight decay has two values on one data set alone: the other one's titles have it too."""

    def change(rows):
        more = [
            (replace(spec, weight_decay=0.01), result)
            for spec, result in rows
            if spec.dataset == "easy"
        ]
        return rows + more

    store = make_store(tasks=TASKS[:2], widths=(64,), seeds=1, change=change)
    decays = (("easy", 0.01), ("easy", 0.0005), (TASKS[1][0], 0.0005))
    wanted = {f"{name} · resnet10 · sgd, lr 0.1, weight decay {d}, 6 epochs" for name, d in decays}
    assert {sweep.title for sweep in load(store).sweeps} == wanted


def test_parts_of_one_s_own_are_named(make_store):
    """A loss of one's own is in the title, and there the law's T is not judged."""

    def mine(spec):
        own = {"model": "./parts.py:Net", "loss": "./parts.py:focal"}
        return replace(spec, **own, source="a" * 16)

    def change(rows):
        return [(mine(spec), result) for spec, result in rows]

    records = load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change))
    assert {s.title for s in records.sweeps} == {"easy · Net · sgd, lr 0.1, 6 epochs, loss focal"}
    assert all(s.law is None for s in records.sweeps)
    with pytest.raises(TstarError, match="the law was not measured"):
        records.judged()


def test_a_diverged_run_counts_as_chance(make_store):
    records = load(make_store(diverged=(0, 1, 2), tasks=TASKS[:1], widths=(64,)))
    (sweep,) = records.with_norm("none")
    assert sweep.seen(1.0) == pytest.approx(1 / TASKS[0][2])


def test_bad_input_is_refused(store, tmp_path):
    with pytest.raises(TstarError, match="does not exist"):
        load(tmp_path / "nothing.db")
    with pytest.raises(TstarError, match="metric 'loss'"):
        load(store, metric="loss")
    with pytest.raises(TstarError, match=r"variant|coefficient"):
        load(store, variant="cns")
    Store(tmp_path / "empty.db", create=True).close()
    with pytest.raises(TstarError, match="No finished runs"):
        load(tmp_path / "empty.db")


def test_commands_name_the_files_as_they_were_given(make_store, tmp_path, monkeypatch):
    """From where the report was made they run again; the base name alone does not."""
    (tmp_path / "work").mkdir()
    make_store("work/my runs.db", tasks=TASKS[:1], widths=(64,), seeds=1)
    get("cn").save(tmp_path / "work" / "mine.json")
    monkeypatch.chdir(tmp_path)
    records = load("work/my runs.db", variant="work/mine.json")
    words = shlex.split(records.command("report"))
    assert words[2:] == ["work/my runs.db", "--metric", "test", "--variant", "work/mine.json"]
