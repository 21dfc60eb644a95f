"""The paper's tables, as printed and from one's own runs: like is compared with like."""

import numpy as np
import pytest

from tests.lab.report.planted import TASKS, rows
from tstar import TstarError
from tstar.formula import temperature
from tstar.lab.fitting import fit, per_environment
from tstar.lab.paper import table as printed
from tstar.lab.report.paper_tables import own_tables, paper_tables, printed_tables
from tstar.lab.report.records import load

DATA = (("gtsrb", 3.0, 43), ("caltech101", 6.0, 101))
TEN = (("mine", 3.0, 10), ("caltech101", 3.0, 10), ("gtsrb", 3.0, 10))


def one(name, records, **options):
    (made,) = own_tables(name, records.conditions, **options)
    return made, made.frame.set_index("method")


def test_printed_tables_are_the_paper_s():
    blocks = printed_tables("datasets")
    assert len(blocks) == printed("datasets")["scenario"].nunique()
    cells = sum(one.frame.size for one in blocks)
    assert cells == printed("datasets").size - len(printed("datasets"))
    assert blocks[0].texts().iloc[0, 0] == "plain, T = 1"
    (coefficients,) = printed_tables("coefficients")
    assert "0.3192" in coefficients.csv()


def test_cells_are_medians_over_seeds_as_in_the_paper(store):
    records = load(store)
    made, frame = one("datasets", records)
    wanted = []
    for M in (64, 256):
        values = rows(records, dataset="easy", norm="none", temperature=1.0, num_features=M)
        wanted.append(100 * np.median(values))
    assert frame.loc["plain", "easy"] == pytest.approx(np.mean(wanted))
    assert "median over seeds" in made.note
    mean = np.mean(rows(records, dataset="easy", norm="none", temperature=1.0))
    _, means = one("datasets", records, average="mean")
    assert means.loc["plain", "easy"] == pytest.approx(100 * mean)


def test_a_grid_stands_for_a_formula_s_T(store):
    """T* between two temperatures is interpolated in ln T, and said to be."""
    records = load(store)
    made, frame = one("datasets", records, average="mean")
    wanted = []
    for sweep in records.with_norm("batch"):
        if sweep.facts["dataset"] == "easy":
            T = temperature(sweep.facts["num_features"])
            wanted.append(100 * sweep.curve.at(T))
    label = "BN, Hasegawa & Sakai T*"
    assert frame.loc[label, "easy"] == pytest.approx(np.mean(wanted))
    assert made.signs[label, "easy"] == "~"
    assert made.texts().set_index("method").loc[label, "easy"].startswith("~")
    assert (label, "plain") not in made.signs


def test_what_was_not_run_in_the_same_conditions_is_not_compared(make_store):
    """Insert LN was run at one width of two: it gives way, and the others keep both."""

    def change(rows):
        return [r for r in rows if r[0].method != "insert-ln" or r[0].num_features == 64]

    store = make_store(tasks=TASKS[:1], methods=("insert-ln",), change=change)
    _, frame = one("datasets", load(store))
    assert "Insert LN" not in frame.index
    assert frame.loc["n", "easy"] == "2 (6)"


def test_seeds_are_those_of_all_rows(make_store):
    """Without BN seed 0 alone: every row is over it."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].seed == 0]

    records = load(make_store(tasks=TASKS[:1], widths=(64,), change=change))
    _, frame = one("datasets", records)
    assert frame.loc["n", "easy"] == "1 (1)"
    curve = records.with_norm("batch")[0].curve
    assert frame.loc["BN, T = 1", "easy"] == pytest.approx(100 * curve.by_seed(1.0)[0])


def test_columns_are_in_the_paper_s_order_and_average_what_is_whole(make_store):
    records = load(make_store(tasks=TEN, widths=(64,)))
    _, frame = one("datasets", records)
    assert [*frame.columns] == ["gtsrb", "caltech101", "mine", "Avg."]
    numbers = frame.loc["plain", ["gtsrb", "caltech101", "mine"]]
    assert frame.loc["plain", "Avg."] == pytest.approx(np.mean(numbers.tolist()))
    assert frame.loc["classes", "gtsrb"] == "10"
    assert frame.loc["csg", "gtsrb"] == "3"


def test_label_smoothing_has_a_table_of_its_own(make_store):
    store = make_store(
        tasks=TASKS[:1], widths=(64,), methods=("default", "default+label-smoothing")
    )
    records = load(store)
    _, smooth = one("smoothing", records)
    assert "plain" in smooth.index
    assert "BN, T = 1" not in smooth.index  # the grid is not smoothed


def test_models_and_transformers(make_store):
    records = load(make_store(tasks=DATA[1:], models=("vit_b_16", "resnet10"), widths=(64,)))
    _, models = one("models", records)
    assert {"ViT-B/16", "resnet10"} <= set(models.columns)
    _, transformers = one("transformers", records)
    assert "resnet10" not in transformers.columns


def test_report_and_fit_give_the_same_number(store):
    """On the same runs, metric and average, whatever the seed."""
    records = load(store)
    (made,) = own_tables("environments", records.conditions, "val")
    direct = per_environment(store, metric="val", seed=5)
    shown = made.frame[:3].sort_values("data set", ignore_index=True)
    wanted = direct[:3].sort_values("dataset", ignore_index=True)
    for column, name in (("acc.", "accuracy"), ("acc., BN", "accuracy_bn")):
        assert shown[column].tolist() == pytest.approx(wanted[name].tolist(), abs=1e-9)
    (sets,) = own_tables("coefficients", records.conditions, "val")
    base = sets.frame.set_index("variant").loc["base"]
    found = fit(store, "base", bootstrap=0, seed=3)
    assert [base["α"], base["β"]] == pytest.approx([*found.solution.theta])
    assert base["regret [points]"] == pytest.approx(100 * found.regret)


def test_an_environment_says_its_range_or_that_it_has_none(make_store):
    def change(rows):
        for spec, result in rows:
            if spec.norm == "none":
                falling = 0.9 - 0.01 * spec.temperature
                result |= {"val_accuracy": falling, "test_accuracy": falling}
        return rows

    (made,) = own_tables(
        "environments", load(make_store(tasks=TASKS[:1], change=change)).conditions
    )
    row = made.texts().iloc[0]
    assert row["α"].startswith("not identified [")
    assert "[" in row["α, BN"]
    assert "not identified" not in row["α, BN"]
    assert "0 that are identified" in made.note


def test_a_report_says_which_tables_it_cannot_fill(store, make_store):
    found, missing = paper_tables(load(store), fits=False)
    assert [t.name for t in found] == ["datasets"]
    assert any("two models" in reason for reason in missing)
    assert any("'transformers'" in reason for reason in missing)
    with pytest.raises(TstarError, match="choose one of"):
        own_tables("tasks", load(store).conditions)
    with pytest.raises(TstarError, match="metric 'nll'"):
        own_tables("datasets", load(store).conditions, "nll")
