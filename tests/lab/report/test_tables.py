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
from tstar.lab.report.records import load
from tstar.lab.report.tables import (
    Table,
    advice_table,
    conditions_table,
    data_table,
    marked,
    methods_table,
    own_tables,
    paper_tables,
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


def test_a_page_gets_every_cell_with_its_mark():
    first, second = small().cells()
    assert first == [(r"<b>=x|y_z& $1$\x1b[31m", ""), ("~12.35", "best"), ("18,000", "")]
    assert second == [("plain", ""), ("–", ""), ("2", "")]


def test_markdown_marks_and_escapes():
    text = small().markdown()
    assert text.startswith("**A &amp; B\\_1**\n\n| name")
    assert "**~12.35**" in text
    assert r"&lt;b&gt;=x\|y\_z&amp;" in text
    assert text.endswith("How to read it.\n")


def test_latex_marks_and_escapes():
    text = small().latex()
    assert r"\textbf{\textasciitilde 12.35}" in text
    assert r"y\_z\& \$1\$" in text
    assert r"\caption{A \& B\_1}" in text
    greek = Table("g", "t", pd.DataFrame({"α": ["±"]}))
    assert r"$\alpha$" in greek.latex()
    assert r"$\pm$" in greek.latex()


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


def test_a_terminal_shows_text_not_markup():
    text = small().text()
    assert text.startswith("A & B_1\n\nname")
    assert text.endswith("How to read it.")
    assert "**~12.35**" in text
    assert "<b>=x|y_z" in text
    assert "\x1b" not in text


def test_ties_share_a_mark_and_one_alone_is_not_best():
    found = marked(pd.Series([98.401, 98.6, 98.399, 98.1], name="x"))
    assert found == {(0, "x"): "second", (1, "x"): "best", (2, "x"): "second"}
    assert marked(pd.Series([1.0, None, None], name="y")) == {}


def test_the_advice_compares_like_with_like(records):
    frame = advice_table(records).frame.set_index("")
    plain = np.mean([rows(records, norm="none", temperature=1.0)])
    assert frame.loc["plain", "accuracy [%]"] == pytest.approx(100 * plain)
    gain = frame.loc["BN, the law's T", "accuracy [%]"] - frame.loc["plain", "accuracy [%]"]
    assert float(frame.loc["BN, the law's T", "over plain"]) == pytest.approx(gain, abs=0.006)
    best = frame.loc["BN, best T of the grid"]
    assert best["search"] == "a grid of runs"
    law = frame.loc["BN, the law's T"]
    wanted = best["accuracy [%]"] - law["accuracy [%]"]
    assert law["below best T"] == pytest.approx(wanted)
    marks = advice_table(records).marks
    assert sorted(marks.values()) == ["best", "second"]


def test_two_conditions_have_no_interval(make_store):
    frame = advice_table(load(make_store(tasks=TASKS[:1]))).frame
    assert "95 % interval" not in frame.columns
    with pytest.raises(TstarError, match="with BN and three temperatures"):
        advice_table(load(make_store("none.db", tasks=TASKS[:1], norms=("none",))))


def test_a_variant_stands_in_the_rows_by_its_own_name(store):
    records = load(store, variant="csgcn")
    names = advice_table(records).frame[""].tolist()
    assert names.count("BN, the paper's T*_csgcn") == 1
    assert "the paper's T*_csgcn" in conditions_table(records).frame
    for table in (advice_table(records), conditions_table(records)):
        assert "law's" not in table.title + "".join(table.frame)


def test_one_row_per_condition(records):
    table = conditions_table(records)
    assert len(table.frame) == 12
    for sweep, row in zip(records.sweeps, table.frame.to_dict("records"), strict=True):
        assert row["best T"] == sweep.ranking[0]
        assert row["best accuracy [%]"] == pytest.approx(100 * sweep.seen(sweep.ranking[0]).mean())
        bn = sweep.facts["norm"] == "batch"
        assert (row["the law's T"] == row["the law's T"]) == bn  # it presupposes BN
        assert row["at T = 1 [%]"] == pytest.approx(100 * sweep.seen(1.0).mean())


def test_a_law_outside_the_grid_has_a_star(make_store):
    table = conditions_table(load(make_store(grid=(8.0, 16.0, 32.0), widths=(64,))))
    assert set(table.signs.values()) == {"*"}
    assert len(table.signs) == 3
    assert table.texts()["the law's T"].str.endswith("*").sum() == 3


def test_methods_are_ranked_on_the_same_seeds(make_store):
    def change(rows):
        kept = []
        for spec, result in rows:
            if spec.method == "insert-ln":
                result["test_accuracy"] = 0.9
            if spec.method == "sqrt-m":
                result["test_accuracy"] = 0.95
                if spec.seed == 2:
                    continue  # other seeds: not ranked
            kept.append((spec, result))
        return kept

    methods = ("insert-ln", "sqrt-m", "default")
    store = make_store(tasks=TASKS[:1], widths=(64,), methods=methods, change=change)
    table = methods_table(load(store))
    frame = table.frame.set_index("method")
    assert frame.loc["sqrt-m", "accuracy [%]"] == pytest.approx(95)
    assert frame["n"].to_dict() == {"insert-ln": 3, "sqrt-m": 2, "default": 3}
    found = {table.frame.loc[row, "method"]: mark for (row, _), mark in table.marks.items()}
    assert found == {"insert-ln": "best", "default": "second"}
    with pytest.raises(TstarError, match="No method"):
        methods_table(load(make_store("grid.db", tasks=TASKS[:1], widths=(64,), seeds=1)))


def test_one_row_per_data_set(records):
    frame = data_table(records).frame.set_index("data set")
    each = len(records.frame) // 3
    assert frame.loc["hard"].tolist() == ["image", 100, 25.5, 1000, each]


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
    label = "BN, the paper's T*"
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
    assert row["α"].startswith("0.00* [")
    assert "[" in row["α, BN"]
    assert "*" not in row["α, BN"]
    assert "0 are identified" in made.note


def test_a_report_says_which_tables_it_cannot_fill(store, make_store):
    found, missing = paper_tables(load(store), fits=False)
    assert [t.name for t in found] == ["datasets"]
    assert any("two models" in reason for reason in missing)
    assert any("'transformers'" in reason for reason in missing)
    with pytest.raises(TstarError, match="choose one of"):
        own_tables("tasks", load(store).conditions)
    with pytest.raises(TstarError, match="metric 'nll'"):
        own_tables("datasets", load(store).conditions, "nll")
