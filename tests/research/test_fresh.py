"""The fresh test from its predictions to its page, with trainings of three steps in its place."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from research import fresh, fresh_page
from tstar.lab.sweep.execute import Job, execute
from tstar.lab.sweep.run import Tally
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.transfer import load_runs, rows_of

STEPS = 3
MARKS = "<!-- table fresh -->\n\n\n\n<!-- end of table -->"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A root with 160 noisy images, and three trainings: tuned, fine-tuned, and with no weights."""
    random = np.random.default_rng(0)
    y = np.arange(160) % 4
    x = (5 * y[:, None, None, None] + random.integers(0, 200, (160, 8, 8, 3))).astype(np.uint8)
    parts = {"x_train": x, "y_train": y, "x_test": x[:40], "y_test": y[:40]}
    np.savez(tmp_path / "cifar10_whole.npz", **parts, classes=np.array(list("abcd")))
    first, _, tuned, *_, last = fresh.drawn()
    own = dict(network="cnn4", dataset="cifar10_whole", domain="image", num_features=8)
    own |= dict(num_classes=4, samples=96, batch_size=32, steps=STEPS, size=8)
    probe = first._replace(
        number=37, norms="frozen", scenario="finetune", **own | {"network": "vgg9"}
    )
    pretrained = last._replace(number=38, **own | {"num_features": 128})  # as pretrained
    monkeypatch.setattr(fresh, "drawn", lambda: (tuned._replace(**own), pretrained, probe))
    monkeypatch.setattr(fresh, "FOLDER", tmp_path)
    advice = (
        fresh.Path(__file__).parents[2] / "results" / "fresh" / "kernel_advice.json"
    ).read_text()
    (tmp_path / "kernel_advice.json").write_text(advice, encoding="utf-8")
    monkeypatch.setattr(fresh, "PRETRAINED", {"cnn4": 1})
    monkeypatch.setattr(fresh, "EPOCH", STEPS)
    monkeypatch.setattr(fresh, "run_study", in_this_process)
    monkeypatch.setattr(fresh_page, "predicted_in", lambda: "abc")
    for cached in (fresh.predictions, fresh.version_2):
        cached.cache_clear()
    yield tmp_path
    for cached in (fresh.predictions, fresh.version_2):
        cached.cache_clear()


def in_this_process(study, store, *, data_root, on_run, **how):
    tally = Tally(len(study))
    with Store(store, create=True) as opened:
        for spec in study.specs:
            outcome = execute(Job(spec, data_root))
            opened.put(spec, outcome.status, outcome.values)
            tally.failed += outcome.status == "failed"
            on_run(opened.get(spec.key))
    return tally


def test_predicted_run_to_its_end_and_shown(small, capsys):
    """Everything that is whole is on the page, and nothing runs twice."""
    root, store = str(small), small / "fresh.db"
    fresh.predict(root).to_csv(small / "predictions.csv", index=False)
    fresh.pretrain(root)
    assert (small / "cnn4_cifar10.pt").exists()
    fresh.run(store, root, 1, None)
    said = capsys.readouterr().out
    assert "vgg9_cifar10.pt is missing" in said
    assert "not whole" not in said, said
    found = fresh.results(store)
    tuned, pretrained, probe = fresh.drawn()
    assert not fresh.wanted(tuned, found)
    assert not fresh.wanted(pretrained, found)
    assert fresh.wanted(probe, found)
    searched = [row for row in found.values() if row["seed"] == fresh.SEARCH_SEED]
    assert len(searched) == 6
    numbers, _ = fresh.search(tuned, found)
    best = max(searched, key=lambda row: row["val_accuracy"])
    assert any(numbers == (r["lr"], r["weight_decay"]) for r in searched
               if r["val_accuracy"] == best["val_accuracy"])  # fmt: skip
    count = len(found)
    fresh.run(store, root, 1, "scratch")
    assert len(fresh.results(store)) == count
    (small / "README.md").write_text(f"# A\n\n{MARKS}\n\nB\n", encoding="utf-8")
    fresh_page.main()
    text = (small / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# A\n")
    assert text.endswith("B\n")
    assert "1 of 1 from scratch and 1 of 2 fine-tuned" in text
    for arm in ("version 0.2", "Prodigy", "schedule-free", "Ultralytics' rule", "rate ÷ 3"):
        assert f"| {arm} | 1 |" in text


def test_a_run_that_was_exported_is_found_under_its_key():
    """Whatever fields a run had when it was trained: some of these have one that is gone."""
    rows = rows_of(load_runs(fresh.FOLDER / "store.parquet"))
    assert rows
    assert [fresh.spec_of(row).key for row in rows] == [row["key"] for row in rows]


def test_the_page_stands_before_the_first_run():
    text = fresh_page.page({}, "abc")
    assert "0 of 24 from scratch and 0 of 14 fine-tuned" in text


@pytest.mark.parametrize("training", fresh.drawn(), ids=lambda t: str(t.number))
def test_every_end_of_a_search_is_predicted_and_every_arm_is_a_run(training):
    """Arms that are the same run have one key; the plain run of both seeds is the user's."""
    for numbers in fresh.stands(training):
        by_seed = [fresh.arms(training, numbers, seed) for seed in fresh.SEEDS]
        assert {*map(fresh.identity, by_seed[0].values())}.isdisjoint(
            map(fresh.identity, by_seed[1].values())
        )
        one = by_seed[0]
        assert (one["plain"].lr, one["plain"].weight_decay) == numbers
        assert replace(one["rate × 3"], lr=numbers[0]) == one["plain"]
        predicted = fresh.predictions()[training.number, numbers]
        if not predicted.known:
            assert fresh.identity(one["the table"]) == fresh.identity(one["plain"])


@pytest.mark.parametrize(("scores", "end"), [
    ({1 / 3: 0.4, 1: 0.5, 3: 0.6, 9: 0.7}, (9, 3)),
    ({1 / 3: 0.6, 1: 0.5, 3: 0.4, 1 / 9: 0.5}, (1 / 3, 3)),
    ({1 / 3: 0.2, 1: 0.5, 3: 0.4, 9: None}, (1, 3)),
])  # fmt: skip
def test_a_search_goes_on_in_the_better_direction(scores, end):
    """A run that diverged is the worst; more decay is better here."""
    training = next(t for t in fresh.drawn() if t.tuned)
    found = {}
    ran = 0
    while left := fresh.search(training, found)[1]:
        for spec in left:
            rate = min(scores, key=lambda r: abs(np.log(r * training.lr / spec.lr)))
            by = spec.weight_decay / training.weight_decay
            score = None if scores[rate] is None else scores[rate] + 0.01 * by
            found[fresh.identity(spec)] = {"val_accuracy": score}
            ran += 1
    assert ran == 6
    lr, decay = fresh.search(training, found)[0]
    assert lr == pytest.approx(end[0] * training.lr, rel=0.01)
    assert decay == pytest.approx(end[1] * training.weight_decay, rel=0.01)


def test_a_search_of_15_runs_ends_where_validation_is_best():
    """Three times the rate and a third of the decay gain 10 points here; a diverged run is last."""
    training = fresh.searched()[0]
    lr, decay = training.lr, training.weight_decay
    _, runs = fresh.search_grid(training, {})
    assert len(runs) == 15
    near = {fresh.identity(s): abs(np.log(s.lr / lr / 3)) + abs(np.log(3 * s.weight_decay / decay))
            for s in runs}  # fmt: skip
    found = {key: {"val_accuracy": 0.5 - far or None} for key, far in near.items()}
    best, again = fresh.search_grid(training, found)
    assert best == pytest.approx((3 * lr, decay / 3), rel=0.01)
    assert [spec.seed for spec in again] == [0, 1]
    own = [fresh.plain(training, (lr, decay), seed) for seed in fresh.SEEDS]
    done = {fresh.identity(spec): {"status": "done", "test_accuracy": score}
            for score, specs in ((0.3, again), (0.2, own)) for spec in specs}  # fmt: skip
    every = pd.DataFrame({"number": [training.number], "arm": ["the table"], "gain": [5.0]})
    assert "| +10.00 | +5.00 |" in fresh_page.search_table(every, found | done)


def test_gains_are_counted_beyond_noise_and_intervals_hold_the_mean():
    gains = [30.0, 1.5, 0.5, -3.0, 0.2]
    part = pd.DataFrame({"gain": gains, "noise": [0.5, 2.0, 0.1, 0.1, 0.1], "as plain": False})
    assert fresh_page.cells(part)[3:8] == ["+1.84", "+0.50", "40% (20%)", "20% (20%)", "20%"]
    assert fresh_page.mean(part["gain"]).startswith("+5.84 (-")
    assert fresh_page.mean(part["gain"][1:]) == "-0.20"


def test_equal_arms_differ_by_more_than_noise_in_a_twentieth():
    random = np.random.default_rng(0)
    beyond = [
        abs(pairs[0].mean() - pairs[1].mean()) > fresh_page.noise_of(pairs)
        for pairs in random.normal(0, 2.0, (4000, 8, 2))
    ]
    assert np.mean(beyond) == pytest.approx(0.05, abs=0.015)
