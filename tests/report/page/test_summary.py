"""What a page says about its runs: how many, of what, from where."""

import pandas as pd

from tstar.report.page.summary import datasets_table, facts, origin, values
from tstar.report.records import load


def test_values_are_listed_in_order_until_they_are_too_many():
    assert values(pd.Series([64, 8, None, 64])) == "8, 64"
    assert values(pd.Series(["b", "a\x07"])) == "a\\x07, b"
    assert values(pd.Series(range(13))) == "13 values, 0 to 12"


def test_the_facts_are_those_of_the_store(records):
    said = dict(facts(records))
    runs = len(records.frame)
    assert said["runs"] == f"{runs:,}, all done"
    assert said["runs"].count(f"{runs:,}") == 1
    assert said["seeds"] == "0, 1, 2"
    assert said["training time"] == f"{1.5 * runs / 60:.1f} minutes"


def test_runs_that_ended_in_several_ways_are_counted(make_store):
    store = make_store(tasks=(("a", 2.0, 10),), widths=(64,), seeds=1, diverged=(0, 1))
    runs = load(store)
    assert dict(facts(runs))["runs"] == "14 (2 diverged, 12 done)"


def test_one_row_per_data_set(records):
    (block,) = datasets_table(records).blocks
    shown = {row[0].text: [cell.text for cell in row[2:]] for row in block.rows}
    each = len(records.frame) // 3
    assert shown["hard"] == ["100", "25.500", "1,000", f"{each:,}"]
    assert set(shown) == {"easy", "middle", "hard"}


def test_the_origin_names_command_store_and_versions(records):
    said = dict(origin(records, "tstar report runs.db"))
    assert said["command"] == "tstar report runs.db"
    assert records.checksum in said["store"]
    assert said["runs: torch"] == "2.9"
