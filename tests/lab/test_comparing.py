"""A comparison: what a view says of planted runs, and the study behind it, on real digits."""

import json
import statistics
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from torch import nn

from tests.lab.sweep.small import InlineEngine
from tstar import TstarError, recommend, temperature
from tstar.lab import data, load_runs, methods, run_study
from tstar.lab.comparing import compare, comparison_study, view
from tstar.lab.data.files import write_npz
from tstar.lab.models import fitting_model
from tstar.lab.sweep.spec import COLUMNS

DEFAULT = [0.80, 0.82, 0.79, 0.83, 0.81]
BETTER = [0.84, 0.87, 0.82, 0.88, 0.86]
NOISE = [0.83, 0.79, 0.82, 0.80, 0.81]


def planted(changes=(), /, **scores):
    """Rows of a store with these test accuracies; ``None`` is a failed run."""
    rows = [
        {
            **{"method": name, "seed": seed, "status": "failed" if score is None else "done"},
            **{"role": "run", "num_classes": 10, "trainings": 1, "norm": "none", "extra": "{}"},
            **{"dataset": "planted", "model": "mlp", "spec": '{"lr": 0.1}'},
            **{"test_accuracy": score, "error": "no teacher" if score is None else None},
            **dict(changes).get(name, {}),
        }
        for name, values in scores.items()
        for seed, score in enumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ["test_accuracy", "temperature", "nll", "ece", "trainings"]
    return frame.astype(dict.fromkeys(numbers, float))


def rows_of(comparison):
    return {row.method: row for row in comparison.rows.itertuples()}


# -- the view --------------------------------------------------------------------------------------
def test_mean_spread_and_marks():
    found = view(planted(default=DEFAULT, better=BETTER, noise=NOISE))
    better = rows_of(found)["better"]
    assert better.mean == pytest.approx(100 * statistics.mean(BETTER))
    assert better.sd == pytest.approx(100 * statistics.stdev(BETTER))
    assert better.n == 5
    marks = found.table().marks
    assert [marks[i, "accuracy [%]"] for i in range(3)] == ["second", "best", "second"]  # a tie


def test_verdicts_are_not_fooled_by_noise():
    found = view(planted(default=DEFAULT, better=BETTER, noise=NOISE))
    assert found.verdicts() == [
        "better than default (Holm, 5 %): better",
        "no evidence of a difference at n = 5: noise",
    ]
    two = rows_of(view(planted(default=DEFAULT[:2], better=[0.9, 0.92001])))
    assert (two["better"].verdict, two["default"].verdict) == ("no evidence", "")


def test_the_test_is_scipys_over_the_same_seeds_in_any_order():
    from scipy.stats import ttest_rel

    found = planted(default=DEFAULT, better=BETTER).sample(frac=1, random_state=0)
    row = rows_of(view(found))["better"]
    expected = ttest_rel(BETTER, DEFAULT)
    assert row.p_t == row.p_holm == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert [row.low, row.high] == pytest.approx([100 * end for end in interval])


@pytest.mark.parametrize("lost", [None, "absent"])
def test_a_failed_or_absent_run_leaves_the_pairs_and_the_ranks(lost):
    runs = planted(default=DEFAULT, shaky=[0.99, None, 0.98, 0.99, 0.97])
    found = view(runs if lost is None else runs[runs["status"] == "done"])
    shaky = rows_of(found)["shaky"]
    assert (shaky.n, shaky.failed) == (4, 1)
    assert shaky.mean == pytest.approx(98.25)
    assert shaky.difference == pytest.approx(
        98.25 - 100 * statistics.mean(DEFAULT[:1] + DEFAULT[2:])
    )
    assert found.table().marks == {}
    assert "4 (1 failed)" in str(found)
    assert ("shaky: no teacher" in str(found)) == (lost is None)


def test_a_method_that_never_ended_has_dashes():
    (_, cells) = view(planted(default=DEFAULT, gone=[None] * 5)).table().texts().to_numpy()
    assert list(cells) == ["gone", "–", "0 (5 failed)", "–", "–", "–", "–", "–", "–"]


def test_a_diverged_run_counts_as_chance_and_is_shown():
    gone = {"gone": {"status": "diverged"}}
    found = view(planted(gone, default=DEFAULT, gone=[float("nan")] * 5))
    row = rows_of(found)["gone"]
    assert (row.n, row.failed, row.diverged, row.mean) == (5, 0, 5, pytest.approx(10.0))
    assert row.verdict == "worse"
    assert "5 (5 diverged)" in str(found)


def test_the_table_says_what_was_trained():
    what = {
        "default": {"temperature": 1.0},
        "advised": {"temperature": 2.0374, "norm": "batch", "extra": '{"lr_factor": 3.0}'},
        "learned": {"extra": '{"temperature": 1.5}'},
        "left": {"temperature": 1.0, "extra": '{"left": true}'},
    }
    found = view(planted(what, default=NOISE, advised=NOISE, learned=NOISE, left=NOISE, none=NOISE))
    trained = ["plain", "BN, T = 2.04, lr ×3", "T = 1.5", "left as it is", "–"]
    assert [*found.rows["trained"]] == [*found.table().frame["trained"]] == trained


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda runs: runs.assign(spec=[json.dumps({"lr": i // 5}) for i in range(10)]), "in lr;"),
        (lambda runs: runs.assign(spec=["{}"] * 5 + ['{"clip_norm": 1.0}'] * 5), "in clip_norm;"),
        (lambda runs: runs.assign(seed=0), "have one twice"),
        (lambda runs: runs[:0], "No runs to compare"),
        (lambda runs: runs[runs["method"] == "better"], "Unknown baseline 'default'"),
    ],
)
def test_runs_that_are_no_comparison_are_refused(change, message):
    with pytest.raises(TstarError, match=message):
        view(change(planted(default=DEFAULT, better=BETTER)))


def test_markdown_csv_and_terminal_say_the_same(tmp_path):
    found = view(planted(**{"default": DEFAULT, "=better": BETTER}))
    markdown, table = found.save(tmp_path / "new", about="how")
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith("how\n")
    for shown in (text, str(found), found.table().text()):
        assert "**85.40 ± 2.41**" in shown
    frame = pd.read_csv(table)
    assert frame["mean"][1] == pytest.approx(85.4)
    assert frame["method"][1] == "'=better"  # no formula for a spreadsheet
    assert np.isnan(frame["p_t"][0])


# -- the study -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def vectors():
    """Digits as 64 numbers, for a network that trains in a blink."""
    digits = data.load("digits").subset(200, 100)
    x = {name: getattr(digits, name).flatten(1).float() / 255 for name in ("x_train", "x_test")}
    return replace(digits, name="vectors", domain="vector", **x)


@pytest.fixture
def engines(monkeypatch):
    """In-process engines, in the order in which they were asked for."""
    made = []
    monkeypatch.setattr(
        "tstar.lab.sweep.run.make_engine", lambda *_: made.append(InlineEngine()) or made[-1]
    )
    return made


def trained(source, names, **options):
    fast = {"seeds": 2, "num_features": 16, "epochs": 1, "augment": False, "batch_size": 64}
    return compare(source, "mlp", names, **(fast | options))


def by_method(comparison, column):
    return {name: [*group[column]] for name, group in comparison.runs.groupby("method")}


def test_every_method_above_chance_on_digits(vectors, engines):
    """Two hundred digits, ten epochs: well above one in ten for every row of the table."""
    names = [name for name in methods.list() if name not in ("fixed", "temperature-check")]
    names += ["fixed:temperature=2.0", "temperature-check:lowest=0.3:highest=3.0:points=3"]
    how = {"seeds": 1, "epochs": 10, "batch_size": 32, "csg": 3.0, "num_features": 32}
    found = trained(vectors, names, **how)
    assert {*found.runs["status"]} == {"done"}
    assert [*found.rows["method"]] == names
    assert not [*found.rows["method"][found.rows["mean"] < 30]]


def test_runs_are_paired_by_seed(vectors, engines):
    """A method that changes nothing gives the default's very result on every seed."""
    found = trained(vectors, ["fixed:temperature=1.0", "temperature-scaling"])
    default, fixed, scaled = by_method(found, "test_accuracy").values()
    assert default == fixed == scaled
    assert len({*by_method(found, "nll")["default"]}) == 2  # the seeds differ


def test_what_a_store_has_is_not_trained_again(vectors, engines, tmp_path):
    path = tmp_path / "runs.db"
    first = trained(vectors, ["kd"], store=path)
    again = trained(vectors, ["kd", "sqrt-m"], store=path, seeds=3)
    assert [len(engine.executed) for engine in engines] == [
        6,
        6,
    ]  # two teachers of two, one of three
    both = again.runs.merge(first.runs, on=["method", "seed"])
    assert len(both) == 4
    assert (both["finished_x"] == both["finished_y"]).all()
    assert str(view(load_runs(path, study="compare", where="seed < 2 and method != 'sqrt-m'"))) == (
        str(first)
    )


def test_validation_chooses_and_test_scores(vectors, engines):
    """Poison every test label: the temperature that is chosen stays the same."""
    poisoned = replace(vectors, y_test=(vectors.y_test + 1) % 10)
    found = [trained(each, ["temperature-check:points=4"], seeds=1) for each in (vectors, poisoned)]
    honest, other = (each.runs.iloc[1] for each in found)
    assert honest["method"] == "temperature-check:points=4"
    assert honest[["temperature", "val_accuracy"]].equals(other[["temperature", "val_accuracy"]])
    assert honest["test_accuracy"] != other["test_accuracy"]


def test_cost_in_trainings(vectors, engines):
    """A search costs its points; a teacher serves all students of a seed, and each counts it."""
    found = trained(vectors, ["kd", "ctkd", "temperature-check:points=2"])
    assert [*found.rows["trainings"]] == [1, 2, 2, 2]
    assert len(engines[0].executed) == 2 * (4 + 1)
    taught = found.runs[found.runs["method"] == "kd"]
    assert {*taught["teacher_features"]} == {32}  # twice the students' width


def test_every_run_says_what_was_trained(vectors, engines):
    """T, norm and the rate's factor; no T where a method has no single one."""
    names = ["sqrt-m", "ours-cn", "insert-ln", "heated-up", "advised"]
    found = trained(vectors, names, seeds=1, steps=100, batch_size=32)
    words = dict(zip(found.rows["method"], found.rows["trained"], strict=True))
    assert (words["default"], words["insert-ln"], words["sqrt-m"]) == ("plain", "–", "T = 4")
    expected = f"BN, T = {temperature(16, 10, variant='cn'):.3g}"
    assert words["ours-cn"] == expected
    assert words["heated-up"] == "T = 1"  # sqrt(M)/16, then four times that
    row = found.runs[found.runs["method"] == "advised"].iloc[0]
    told = {"optimizer": "sgd", "lr": 0.1, "steps": 100, "batch_size": 32, "momentum": 0.9}
    told |= {"weight_decay": 5e-4, "schedule": "cosine", "samples": 180, "scenario": "scratch"}
    advice = recommend(fitting_model("mlp", vectors, 16, 0), **told)
    assert row["temperature"] == pytest.approx(advice.temperature, rel=1e-6)
    assert json.loads(row["extra"])["lr_factor"] == pytest.approx(advice.lr / 0.1)


def test_a_diverging_run_is_recorded_and_the_others_go_on(vectors, engines):
    rows = rows_of(trained(vectors, ["fixed:temperature=1e-30"], epochs=3))
    wild = rows["fixed:temperature=1e-30"]
    assert (wild.failed, wild.diverged, wild.n, wild.mean) == (0, 2, 2, pytest.approx(10.0))
    assert rows["default"].diverged == 0


def test_a_run_that_cannot_be_done_is_recorded_with_its_reason(vectors, engines):
    two = vectors.regroup([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], ["low", "high"], "two")
    rows = rows_of(trained(two, ["adacos-fixed"], seeds=1))
    assert (rows["adacos-fixed"].failed, rows["default"].failed) == (1, 0)
    assert "K >= 3" in rows["adacos-fixed"].errors
    lost = rows_of(trained(two, ["kd"], seeds=1, lr=1e20, epochs=2))["kd"]
    assert lost.failed == 1
    assert "ended as diverged" in lost.errors


class Own(nn.Module):
    def __init__(self, num_classes, in_channels, num_features):
        super().__init__()
        self.body = nn.Linear(in_channels, num_features)
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x):
        return self.head(self.body(x).relu())


def halved(model, facts):
    return methods.get("fixed", temperature=2.0).prepare(model, facts)


def test_your_own_network_method_and_arrays(vectors, engines):
    names = ("x_train", "y_train", "x_test", "y_test")
    arrays = tuple(getattr(vectors, name).numpy() for name in names)
    found = compare(arrays, Own, ["default", halved], seeds=1, epochs=1, num_features=8)
    assert [*found.rows["method"]] == ["default", f"{__name__}:halved"]
    assert [*found.rows["trained"]] == ["plain", "T = 2"]


def test_a_study_of_your_own_is_compared(vectors, engines, tmp_path):
    grid = {"dataset": vectors, "model": "mlp", "num_features": 8, "method": ["default", "sqrt-m"]}
    run_study(
        {"csg": False, "training": {"epochs": 1}, "grid": {**grid, "seeds": 2}}, tmp_path / "r"
    )
    rows = rows_of(view(load_runs(tmp_path / "r"), baseline="sqrt-m"))
    gain = rows["default"].mean - rows["sqrt-m"].mean
    assert rows["default"].difference == pytest.approx(gain)


def test_a_folder_of_this_machine_is_read_into_memory(vectors, tmp_path):
    write_npz(vectors, tmp_path / "mine.npz")
    study = comparison_study(str(tmp_path / "mine.npz"), "mlp", ["default"], seeds=1)
    (spec,) = study.specs
    assert spec.dataset == f"mine-{vectors.checksum()[:8]}"
    assert study.data[spec.dataset].checksum() == vectors.checksum()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds must be a whole number of at least 1"),
        ({"seeds": [-1]}, "seed must be a whole number"),
        ({"num_features": [8, 16]}, "num_features must be one value"),
        ({"speed": 3}, "Unknown field 'speed'"),
    ],
)
def test_bad_plans_are_refused(vectors, changes, message):
    with pytest.raises(TstarError, match=message):
        comparison_study(vectors, "mlp", ["default"], **changes)


def test_methods_are_checked_before_any_training(vectors, engines):
    with pytest.raises(TstarError, match="Unknown method 'defualt'"):
        trained(vectors, ["defualt"])
    with pytest.raises(
        TstarError, match=r"val_fraction > 0 must hold for method 'temperature-check'"
    ):
        trained(vectors, ["temperature-check"], val_fraction=0.0)
    assert not any(engine.executed for engine in engines)


def test_each_method_and_seed_counts_once_and_the_baseline_is_first(vectors):
    study = comparison_study(vectors, "mlp", ["sqrt-m", " sqrt-m", ""], seeds=[1, 1, 0])
    runs = [(spec.seed, spec.method) for spec in study.specs]
    assert runs == [(1, "default"), (1, "sqrt-m"), (0, "default"), (0, "sqrt-m")]
