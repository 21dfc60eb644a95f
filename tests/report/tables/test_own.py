"""Tables that the paper has not: advice, conditions, methods."""

import pytest

from tests.report.planted import cells
from tstar import TstarError
from tstar.report.records import load
from tstar.report.tables.own import advice_table, conditions_table, methods_table


def test_the_advice_is_compared_on_the_same_conditions_and_seeds(make_store):
    """Plain was run in one of three tasks: every row is over that one."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].dataset == "easy"]

    records = load(make_store(widths=(64,), change=change))
    table = advice_table(records)
    rows = {row[0].text: row for row in table.blocks[0].rows}
    assert "the same 1 conditions (of 3 with BN, those that ran plain too)" in table.note
    sweep = next(s for s in records.with_norm("batch") if s.facts["dataset"] == "easy")
    assert rows["plain"][1].value == pytest.approx(100 * sweep.condition.plain())
    assert rows["BN, the law's T"][1].value == pytest.approx(100 * sweep.at(sweep.recommended))
    assert rows["BN, T = 1"][1].value == pytest.approx(100 * sweep.mean(0))
    gain = rows["BN, the law's T"][1].value - rows["plain"][1].value
    assert rows["BN, the law's T"][2].value == pytest.approx(gain)
    assert len([name for name in rows if "Hasegawa & Sakai" in name]) == 4


def test_every_condition_is_a_row(store):
    records = load(store)
    table = conditions_table(records)
    rows = table.blocks[0].rows
    assert len(rows) == len(records.sweeps)
    for row, sweep in zip(rows, records.sweeps, strict=True):
        value = dict(zip(table.columns, row, strict=True))
        assert value["best T"].value == sweep.temperatures[sweep.best]
        assert value["at T = 1"].value == pytest.approx(100 * sweep.mean(0))
        assert (value["regret"].value is None) == (sweep.facts["norm"] == "none")


def test_methods_are_ranked_within_their_block_and_failures_are_not(make_store):
    def change(rows):
        for spec, result in rows:
            result["test_accuracy"] = {"default": 0.7, "kd": 0.9, "insert-ln": 0.8}[spec.method]
        return rows

    store = make_store(
        tasks=(("a", 2.0, 10),),
        grid=(),
        widths=(64,),
        seeds=2,
        methods=("default", "kd", "insert-ln"),
        change=change,
        diverged=(4,),
    )
    found = cells(methods_table(load(store)))
    heading = "a · resnet10 · M = 64"
    assert found[heading, "kd", "accuracy [%]"].mark == "best"
    assert found[heading, "default", "accuracy [%]"].mark == "second"
    # One of its two runs diverged, and counts as chance: (80 + 10)/2.
    assert found[heading, "insert-ln", "accuracy [%]"].value == pytest.approx(45)


def test_methods_with_other_seeds_are_not_ranked_and_conditions_not_mixed(make_store):
    def change(rows):
        kept = []
        for spec, result in rows:
            result["test_accuracy"] = {"default": 0.7, "kd": 0.8, "insert-ln": 0.99}[spec.method]
            if spec.method != "insert-ln" or spec.seed == 0:
                kept.append((spec, result))
        return kept

    store = make_store(
        tasks=(("a", 2.0, 10),),
        grid=(),
        widths=(64,),
        seeds=2,
        methods=("default", "kd", "insert-ln"),
        change=change,
        lr=(0.1, 0.01),
    )
    table = methods_table(load(store))
    assert [block.heading for block in table.blocks] == [
        "a · resnet10 · M = 64 · lr 0.01",
        "a · resnet10 · M = 64 · lr 0.1",
    ]
    for block in table.blocks:
        marks = {row[0].text: row[1].mark for row in block.rows}
        assert marks == {"default": "second", "kd": "best", "insert-ln": ""}


def test_the_rate_that_a_method_really_trained_at_is_shown(make_store):
    """Two methods in one block of lr 0.1, one of which multiplied it; a third left the model."""
    told = {"advised": {"lr_factor": 3.0, "left": False}, "kd": {"lr_factor": 1.0, "left": True}}

    def change(rows):
        return [(s, r | {"extra": told.get(s.method, {})}) for s, r in rows]

    methods = ("default", "advised", "kd")
    options = {"tasks": (("a", 2.0, 10),), "grid": (), "widths": (64,), "seeds": 2}
    table = methods_table(load(make_store(**options, methods=methods, change=change)))
    factors = {row[0].text: row[table.columns.index("lr factor")] for row in table.blocks[0].rows}
    assert {name: cell.value for name, cell in factors.items()} == {
        "default": None,
        "advised": 3.0,
        "kd: left as it is": 1.0,
    }
    assert "multiplied the learning rate" in table.note
    bare = methods_table(load(make_store("bare.db", **options, methods=methods)))
    assert "lr factor" not in bare.columns
    assert "learning rate" not in bare.note


def test_no_methods_no_table(make_store):
    store = make_store(tasks=(("a", 2.0, 10),), widths=(64,), seeds=1, norms=("batch",))
    with pytest.raises(TstarError, match="No method"):
        methods_table(load(store))
