"""Tables: pandas writes them, and whatever is in a name stays text."""

import io

import numpy as np
import pandas as pd
import pytest

from tests.lab.report.planted import TASKS, rows
from tstar import TstarError
from tstar.formula import temperature
from tstar.lab.fitting import fit, per_environment
from tstar.lab.paper import table as printed
from tstar.lab.report.catalogue import get_figure
from tstar.lab.report.records import load
from tstar.lab.report.tables import (
    Table,
    advice_table,
    conditions_table,
    marked,
    own_tables,
    printed_tables,
)

DATA = (("gtsrb", 3.0, 43), ("caltech101", 6.0, 101))
TEN = (("mine", 3.0, 10), ("caltech101", 3.0, 10), ("gtsrb", 3.0, 10))
NASTY = "<b>=x|y_z& $1$\x1b[31m"


def small():
    frame = pd.DataFrame({"name": [NASTY, "plain"], "acc. [%]": [12.345, None], "n": [18000, 2]})
    return Table(
        "small",
        "A & B_1",
        frame,
        "How to read it.",
        {"acc. [%]": 2},
        marks={(0, "acc. [%]"): "best"},
        signs={(0, "acc. [%]"): "~"},
    )


def test_cells_as_people_write_them():
    texts = small().texts()
    assert texts["acc. [%]"].tolist() == ["~12.35", "–"]
    assert texts["n"].tolist() == ["18,000", "2"]
    assert texts["name"][0] == r"<b>=x|y_z& $1$\x1b[31m"
    tiny = Table("t", "t", pd.DataFrame({"x": [-0.001]}), digits={"x": 2})
    assert tiny.texts()["x"][0] == "0.00"


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("markdown", ("**A &amp; B\\_1**\n\n| name", "**~12.35**", r"&lt;b&gt;=x\|y\_z&amp;")),
        ("latex", (r"\textbf{\textasciitilde 12.35}", r"y\_z\& \$1\$", r"\caption{A \& B\_1}")),
        ("text", ("A & B_1\n\nname", "**~12.35**", "<b>=x|y_z", "How to read it.")),
    ],
)
def test_marks_are_shown_and_names_stay_text(kind, parts):
    text = getattr(small(), kind)()
    assert [part for part in parts if part not in text] == []
    assert "\x1b" not in text
    greek = getattr(Table("g", "t", pd.DataFrame({"α": ["±"]})), kind)()
    assert (r"$\alpha$" in greek and r"$\pm$" in greek) == (kind == "latex")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_of_a_csv_is_a_formula(start):
    """Not even one that starts with a line break: a spreadsheet looks past it."""
    frame = pd.DataFrame({f"{start}head": [f"{start}1+1", -1.5]})
    text = Table("t", "t", frame).csv()
    read = pd.read_csv(io.StringIO(text), dtype=str)
    for cell in (read.columns[0], read.iloc[0, 0]):
        assert cell[0] not in "=+-@\t\r\n"
        assert not any(ord(character) < 32 for character in cell)
    assert read.iloc[1, 0] == "-1.5"  # a number stays one


def test_ties_share_a_mark_and_one_alone_is_not_best():
    found = marked(pd.Series([98.401, 98.6, 98.399, 98.1], name="x"))
    assert found == {(0, "x"): "second", (1, "x"): "best", (2, "x"): "second"}
    assert marked(pd.Series([1.0, None, None], name="y")) == {}


def test_every_gain_is_the_mean_over_the_same_conditions(records):
    """Against sums done by hand, over plain, over BN at T = 1, and to the best T of the grid."""
    gains = {"plain": [], "BN, T = 1": [], "BN, best T of the grid": []}
    for plain, bn in records.pairs():
        means = bn.curve.means()
        there = np.interp(np.log(bn.law), np.log(bn.temperatures), means)
        best = means[bn.temperatures.index(bn.best)]
        for values, base in zip(
            gains.values(), (plain.curve.means()[0], means[0], best), strict=True
        ):
            values.append(100 * (there - base))
    table = advice_table(records)
    frame = table.frame.set_index("")
    for name, values in gains.items():
        row = frame.loc[name]
        assert float(row["gain of the law's T"]) == pytest.approx(np.mean(values), abs=0.006)
        assert row["better in"] == sum(value > 0 for value in values)
        low, high = map(float, row["95 % interval"].split(" to "))
        assert low <= np.mean(values) <= high
    assert sorted(table.marks.values()) == ["best", "second"]
    pd.testing.assert_frame_equal(table.frame, advice_table(records).frame)


@pytest.mark.parametrize(
    ("kept", "n"),
    [
        (lambda spec: spec.norm == "batch" or spec.seed == 0, "same 3 conditions"),
        (lambda spec: spec.norm == "batch" or spec.dataset == "easy", "same 1 conditions (those"),
    ],
)
def test_what_only_one_side_has_is_not_compared(make_store, kept, n):
    """Without BN one seed alone was run, or one task: its own pairs are compared."""
    change = lambda rows: [row for row in rows if kept(row[0])]  # noqa: E731
    records = load(make_store(widths=(64,), change=change))
    wanted = []
    for plain, bn in records.pairs():
        there = bn.curve.only(plain.curve.seeds).at(bn.law)
        wanted.append(100 * (there - np.mean([*plain.curve.by_seed(1.0).values()])))
    table = advice_table(records)
    gain = table.frame.set_index("").loc["plain", "gain of the law's T"]
    assert float(gain) == pytest.approx(np.mean(wanted), abs=0.006)
    assert n in table.note


def test_a_training_that_the_law_was_not_measured_on_has_a_way_out(make_store):
    """The paper's own protocol: its 78,200 steps are beyond what the law was measured on."""

    def change(rows):
        return [(spec, result | {"steps": 78_200}) for spec, result in rows]

    store = make_store(widths=(64,), seeds=2, change=change)
    for make in (advice_table, get_figure("recommended").data):
        with pytest.raises(TstarError, match=r"of 3 with BN .* --variant base"):
            make(load(store))
    table = advice_table(load(store, variant="base"))
    assert "law's T" not in table.title + table.text()


def test_few_conditions_have_no_interval_and_few_data_sets_say_so(make_store):
    two = advice_table(load(make_store(tasks=TASKS[:1])))
    assert "95 % interval" not in two.frame.columns
    assert "with one data set" in two.note
    with pytest.raises(TstarError, match="No condition has BN and three temperatures"):
        advice_table(load(make_store("none.db", tasks=TASKS[:1], norms=("none",))))


def test_a_variant_stands_in_the_rows_by_its_own_name(store):
    records = load(store, variant="csgcn")
    names = advice_table(records).frame[""].tolist()
    assert names.count("BN, Hasegawa & Sakai T*_csgcn") == 1
    assert "Hasegawa & Sakai T*_csgcn" in conditions_table(records).frame


def test_one_row_per_condition_and_what_was_done(records):
    frame = conditions_table(records).frame
    grids, methods = frame[:12], frame[12:]
    for sweep, row in zip(records.sweeps, grids.to_dict("records"), strict=True):
        assert row["best T"] == sweep.best
        assert row["accuracy [%]"] == pytest.approx(100 * sweep.seen(sweep.best).mean())
        bn = sweep.facts["norm"] == "batch"
        assert (row["the law's T"] == row["the law's T"]) == bn  # it presupposes BN
        assert row["at T = 1 [%]"] == pytest.approx(100 * sweep.seen(1.0).mean())
    assert set(methods["done"]) == {"insert-ln"}
    first = rows(records, dataset="easy", method="insert-ln", num_features=64)
    assert methods["accuracy [%]"].iloc[0] == pytest.approx(100 * np.mean(first))
    assert set(methods["n"]) == {3}


def test_a_law_outside_the_grid_has_a_star(make_store):
    records = load(make_store(grid=(8.0, 16.0, 32.0), widths=(64,)))
    table = conditions_table(records)
    assert set(table.signs.values()) == {"*"}
    assert len(table.signs) == 3
    assert table.texts()["the law's T"].str.endswith("*").sum() == 3
    assert "the law's T lies in 3 of them" in advice_table(records).note


# -- the paper's ---------------------------------------------------------------------------------
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
    assert frame.loc["plain, T = 1", "easy"] == pytest.approx(np.mean(wanted))
    assert "median over seeds" in made.note


def test_a_grid_stands_for_a_formula_s_T(store):
    """T* between two temperatures is interpolated in ln T, and said to be."""
    records = load(store)
    made, frame = one("datasets", records)
    wanted = []
    for sweep in records.with_norm("batch"):
        if sweep.facts["dataset"] == "easy":
            T = temperature(sweep.facts["num_features"])
            seeds = sweep.curve.test
            at = [np.interp(np.log(T), np.log(sweep.temperatures), values) for values in seeds]
            wanted.append(100 * np.median(at))
    label = "Hasegawa & Sakai T*"
    assert frame.loc[label, "easy"] == pytest.approx(np.mean(wanted))
    assert made.signs[label, "easy"] == "~"
    assert made.texts().set_index("method").loc[label, "easy"].startswith("~")
    assert ("plain, T = 1", "easy") not in made.signs


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
    numbers = frame.loc["plain, T = 1", ["gtsrb", "caltech101", "mine"]]
    assert frame.loc["plain, T = 1", "Avg."] == pytest.approx(np.mean(numbers.tolist()))


def test_label_smoothing_has_a_table_of_its_own(make_store):
    store = make_store(
        tasks=TASKS[:1], widths=(64,), methods=("default", "default+label-smoothing")
    )
    records = load(store)
    _, smooth = one("smoothing", records)
    assert "plain, T = 1" in smooth.index
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
    assert row["α"].startswith("0.00* [")
    assert "[" in row["α, BN"]
    assert "*" not in row["α, BN"]
    assert "0 are identified" in made.note


def test_what_runs_cannot_fill_says_so(store):
    records = load(store)
    with pytest.raises(TstarError, match="choose one of"):
        own_tables("tasks", records.conditions)
    with pytest.raises(TstarError, match="metric 'nll'"):
        own_tables("datasets", records.conditions, "nll")
    with pytest.raises(TstarError, match="'transformers'"):
        own_tables("transformers", records.conditions)
