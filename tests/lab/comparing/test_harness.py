"""The comparison itself, on real digits: paired by seed, validation chooses, test scores."""

from dataclasses import replace

import pytest

from tstar import TstarError, recommend, temperature
from tstar.lab import data, methods
from tstar.lab.comparing import compare as compare_methods
from tstar.lab.comparing import cost, plan
from tstar.lab.models import fitting_model
from tstar.lab.training import Config

FAST = Config(epochs=1, augment=False, batch_size=64)


@pytest.fixture(scope="module")
def digits():
    return data.load("digits").subset(200, 100)


@pytest.fixture(scope="module")
def vectors(digits):
    """Digits as 64 numbers, for a network that trains in a blink."""
    return replace(
        digits,
        domain="vector",
        x_train=digits.x_train.flatten(1).float() / 255,
        x_test=digits.x_test.flatten(1).float() / 255,
    )


def compare(dataset, names, **options):
    settings = {"seeds": 2, "num_features": 16, "config": FAST}
    return compare_methods(dataset, "mlp", names, **(settings | options))


def test_every_method_above_chance_on_digits(vectors):
    """Two hundred digits, ten epochs: well above one in ten for every row of the table."""
    config = replace(FAST, epochs=10, batch_size=32)
    names = [name for name in methods.list() if name != "temperature-check"]
    names += ["temperature-check:lowest=0.3:highest=3.0:points=3"]
    found = compare(vectors, names, seeds=1, config=config, csg=3.0, num_features=32)
    assert {run.status for run in found.runs} == {"done"}
    poor = {run.method: run.test_accuracy for run in found.runs if run.test_accuracy < 0.3}
    assert not poor


def test_runs_are_paired_by_seed(vectors):
    """A method that changes nothing gives the default's very result on every seed; the seeds differ."""
    found = compare(vectors, ["default", "fixed:temperature=1.0", "temperature-scaling"])
    by_method = {}
    for run in found.runs:
        by_method.setdefault(run.method, []).append((run.seed, run.test_accuracy, run.val_accuracy))
    default, fixed, scaled = by_method.values()
    assert default == fixed == scaled
    nll = {run.nll for run in found.runs if run.method == "default"}
    assert len(nll) == 2


def test_the_same_comparison_gives_the_same_numbers(vectors):
    first, second = (compare(vectors, ["default", "kd", "insert-ln"]) for _ in range(2))
    strip = [[replace(run, seconds=0.0) for run in c.runs] for c in (first, second)]
    assert strip[0] == strip[1]


def test_validation_chooses_and_test_scores(vectors):
    """Poison every test label: the temperature that is chosen stays the same."""
    names = ["temperature-check:points=4"]
    honest = compare(vectors, names, seeds=1).runs[1]
    poisoned = replace(vectors, y_test=(vectors.y_test + 1) % 10)
    other = compare(poisoned, names, seeds=1).runs[1]
    assert honest.temperature == other.temperature
    assert honest.val_accuracy == other.val_accuracy
    assert honest.test_accuracy != other.test_accuracy


def test_costs_in_training_runs(vectors):
    assert cost(methods.get("default")) == 1
    assert cost(methods.get("kd")) == 2
    assert cost(methods.get("temperature-check")) == 7
    assert cost(methods.get("temperature-check:points=4")) == 4
    todo = plan(["kd", "ctkd", "temperature-check"], 3)
    assert list(todo.methods) == ["default", "kd", "ctkd", "temperature-check"]
    assert todo.trainings == 3 * (1 + 1 + 1 + 7 + 1)  # one teacher a seed serves both
    epochs = []
    compare(
        vectors,
        ["kd", "ctkd", "temperature-check:points=2"],
        seeds=1,
        on_epoch=lambda name, seed, epoch, total: epochs.append(name),
    )
    assert sorted(epochs) == sorted(
        ["default", "teacher", "kd", "ctkd"] + ["temperature-check:points=2"] * 2
    )


def test_every_run_says_what_was_trained(vectors):
    """T, norm and the rate's factor; ``None`` where a method has no single T."""
    names = ["default", "label-smoothing", "kd", "sqrt-m", "ours-cn", "insert-ln", "heated-up"]
    names += ["advised", "ours-cn:schedule=linear"]
    steps = replace(FAST, steps=100, batch_size=32, lr=0.1)  # a training that was measured
    found = {run.method: run for run in compare(vectors, names, seeds=1, config=steps).runs}
    T = {name: run.temperature for name, run in found.items()}
    assert [T[name] for name in names[:4]] == [1, 1, 1, 4]  # sqrt-m of M = 16
    expected = temperature(16, 10, variant="cn")
    assert T["ours-cn"] == T["ours-cn:schedule=linear"] == pytest.approx(expected, rel=1e-6)
    assert T["insert-ln"] is None
    assert T["heated-up"] == 1  # sqrt(M)/16, then four times that
    norms = {name for name, run in found.items() if run.norm == "batch"}
    assert norms == {"ours-cn", "heated-up", "advised", "ours-cn:schedule=linear"}
    told = {"optimizer": "sgd", "lr": 0.1, "steps": 100, "batch_size": 32, "momentum": 0.9}
    told |= {"weight_decay": 5e-4, "scheduler": "cosine", "samples": 180, "scenario": "scratch"}
    advice = recommend(fitting_model("mlp", vectors, 16, 0), **told)
    assert T["advised"] == pytest.approx(float(advice), rel=1e-6)
    assert found["advised"].lr_factor == pytest.approx(advice.lr / 0.1)
    assert {run.lr_factor for name, run in found.items() if name != "advised"} == {1}
    assert not any(run.left for run in found.values())
    odd = compare(vectors, ["advised"], seeds=1, config=replace(FAST, lr=1e-7)).runs[1]
    assert (odd.left, odd.temperature, odd.norm, odd.lr_factor) == (True, 1, "none", 1)


def test_a_diverging_run_is_recorded_and_the_others_go_on(vectors):
    found = compare(vectors, ["default", "fixed:temperature=1e-30"], config=replace(FAST, epochs=3))
    rows = {row.method: row for row in found.rows()}
    assert rows["default"].diverged == 0
    wild = rows["fixed:temperature=1e-30"]
    assert (wild.failed, wild.diverged, wild.n) == (0, 2, 2)
    assert wild.mean == pytest.approx(10.0)  # chance, as everywhere
    assert "NaN" in wild.errors


def test_a_run_that_cannot_be_done_is_recorded_with_its_reason(vectors):
    two = vectors.regroup([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], ["low", "high"], "two")
    found = compare(two, ["adacos-fixed", "default"], seeds=1)
    by_method = {run.method: run for run in found.runs}
    assert by_method["adacos-fixed"].status == "failed"
    assert "K >= 3" in by_method["adacos-fixed"].error
    assert by_method["default"].status == "done"
    kd = compare(two, ["kd"], seeds=1, config=replace(FAST, lr=1e20, epochs=2)).runs[1]
    assert (kd.status, kd.error) == ("failed", "The teacher of seed 0 diverged.")


def test_validation_data_missing_is_refused_before_training(vectors):
    with pytest.raises(TstarError, match="temperature-check"):
        compare(vectors, ["default", "temperature-check"], config=replace(FAST, val_fraction=0.0))


def test_bad_plans_are_refused():
    for names, seeds, match in [
        (["defualt"], 3, "default"),
        (["default"], 0, "seeds must be a whole number of at least 1"),
        (["default"], [-1], "A seed must be a whole number"),
    ]:
        with pytest.raises(TstarError, match=match):
            plan(names, seeds)
    named = plan(["kd", "kd"], [1, 1, 0])  # each counts once
    assert ([*named.methods], named.seeds) == (["default", "kd"], (1, 0))
