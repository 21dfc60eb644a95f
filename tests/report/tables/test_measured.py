"""The paper's tables, filled from runs."""

import statistics

import pandas as pd
import pytest

from tests.paper.shared import run, shown
from tests.report.planted import GRID, cells
from tstar import paper
from tstar.report.records import load
from tstar.report.tables.cells import Block, Cell, Table
from tstar.report.tables.measured import own_table, paper_tables, split


def test_the_paper_s_layout_holds_the_runs_means(make_store):
    store = make_store(
        methods=("insert-ln",), grid=(1 / 32, 1 / 4, *GRID)
    )  # around every advised T
    table = own_table("datasets", load(store).conditions)
    found = cells(table)
    frame = load(store).frame
    block = table.blocks[0].heading
    assert block.startswith("resnet10, from scratch · 1,000 samples, 6 epochs")
    one = frame[
        (frame["dataset"] == "hard") & (frame["norm"] == "none") & (frame["temperature"] == 1)
    ]
    want = 100 * statistics.mean(one["test_accuracy"])
    assert found[block, "plain", "hard"].value == pytest.approx(want)
    insert = frame[(frame["dataset"] == "hard") & (frame["method"] == "insert-ln")]
    assert found[block, "Insert LN", "hard"].value == pytest.approx(
        100 * statistics.mean(insert["test_accuracy"])
    )
    assert found[block, "n", "hard"].text == "2 (6)"  # two widths, three seeds
    for column in table.columns[1:]:
        here = [
            c for (_, row, name), c in found.items() if name == column and row != "n" and c.value
        ]
        best = max(round(cell.value, 2) for cell in here)
        assert [cell.mark == "best" for cell in here] == [
            round(cell.value, 2) == best for cell in here
        ]
    heads = {head[0]: dict(zip(table.columns, head, strict=True)) for head in table.heads}
    assert heads["csg"]["hard"] == "25.50"
    assert heads["classes"]["hard"] == "100"


def test_a_table_that_is_mostly_dashes_is_split():
    def row(name, *values):
        return (Cell(name), *(Cell("–") if v is None else Cell(str(v), v) for v in values))

    blocks = tuple(
        Block((row("plain", *(1.0 if i == j else None for j in range(3))),), f"block {i}")
        for i in range(3)
    )
    table = Table("t", "T", ("method", "a", "b", "c"), blocks)
    parts = split(table)
    assert [part.columns for part in parts] == [("method", "a"), ("method", "b"), ("method", "c")]
    assert [part.title for part in parts] == ["T: block 0", "T: block 1", "T: block 2"]
    assert split(parts[0]) == [parts[0]]


def test_tables_that_the_runs_do_not_fill_say_why(store):
    found, missing = paper_tables(load(store), fits=False)
    assert {table.name for table in found} == {"datasets"}
    assert any("label smoothing" in reason for reason in missing)
    assert any(reason.startswith("Transformers on Caltech101") for reason in missing)
    assert any("No data set was run with two models" in reason for reason in missing)


def test_models_side_by_side_where_a_data_set_has_two(make_store):
    found, _ = paper_tables(load(make_store(models=("resnet10", "vgg9"), widths=(64,))), fits=False)
    (table,) = [table for table in found if table.name == "models"]
    assert table.columns == ("method", "resnet10", "vgg9", "Avg.")


@pytest.mark.slow
def test_fitted_tables_come_from_the_runs(store):
    found, _ = paper_tables(load(store))
    by_name = {table.name: table for table in found}
    assert {"environments", "corrections", "coefficients"} <= set(by_name)
    assert [row[1].text for row in by_name["environments"].blocks[0].rows][-2:] == ["Avg.", "S.D."]


@pytest.mark.parametrize("name", list(paper.tables()))
def test_every_table_prints_with_its_marks(name):
    text = shown(name)
    marks = paper.marks(name)
    cells = paper.table(name).columns.difference(["table"])
    for column in cells:
        for sign, pattern in (("best", "**{}**"), ("second", "_{}_")):
            for index in marks.index[marks[column] == sign]:
                value = paper.table(name).loc[index, column]
                assert pattern.format(f"{value:.2f}" if isinstance(value, float) else value) in text


def test_bold_and_underlined_on_a_terminal():
    text = shown("transformers", plain=False)
    assert "\x1b[1m55.34" in text
    assert "\x1b[4m54.30" in text
    assert "**" not in text


def test_yours_is_a_table_of_its_own_that_says_what_differs():
    facts = {"size": 32, "num_train": 4000, "epochs": 20}
    runs = pd.DataFrame(
        [run(accuracy=0.4321, **facts), run(accuracy=0.5678, norm="batch", **facts)]
    )
    printed, own = shown("datasets", runs=runs).split("Every model on every data set")
    assert "89.14" in printed
    assert "43.21" not in printed
    assert "89.14" not in own
    assert "ResNet50, fine-tuned · 32 px, 4,000 samples, 20 epochs" in own
    lines = own.splitlines()
    assert "_43.21_" in next(line for line in lines if "plain" in line)
    assert "**56.78**" in next(line for line in lines if "BN, T = 1" in line)
    assert "1 (1)" in own
