"""The headline: its means against sums done by hand, and when there is none."""

import numpy as np
import pytest

from tests.lab.report.planted import TASKS
from tstar import TstarError
from tstar.lab.report.catalogue import get_figure
from tstar.lab.report.headline import headline
from tstar.lab.report.records import load
from tstar.lab.report.tables import advice_table


def by_name(found):
    return {line.over: line for line in found.lines}


def test_gain_and_regret_are_means_over_conditions(records):
    gains, over_bn, left = [], [], []
    for plain, bn in records.pairs():
        means = bn.curve.means()
        there = np.interp(np.log(bn.law), np.log(bn.temperatures), means)
        gains.append(100 * (there - plain.curve.means()[0]))
        over_bn.append(100 * (there - means[0]))
        left.append(100 * (there - means[bn.temperatures.index(bn.ranking[0])]))
    found = by_name(headline(records))
    assert found["plain"].value.value == pytest.approx(np.mean(gains))
    assert found["bn_one"].value.value == pytest.approx(np.mean(over_bn))
    assert found["best"].value.value == pytest.approx(np.mean(left))
    assert found["plain"].better == sum(gain > 0 for gain in gains)
    assert {line.conditions for line in found.values()} == {6}
    for line in found.values():
        assert line.value.low <= line.value.value <= line.value.high
    assert headline(records) == headline(records)


def test_two_conditions_have_no_headline(make_store):
    with pytest.raises(TstarError, match=r"At least 3 conditions .* got 2"):
        headline(load(make_store(tasks=TASKS[:1])))


def test_a_training_that_the_law_was_not_measured_on_has_a_way_out(make_store):
    """The paper's own protocol: its 78,200 steps are beyond what the law was measured on."""

    def change(rows):
        return [(spec, result | {"steps": 78_200}) for spec, result in rows]

    store = make_store(widths=(64,), seeds=2, change=change)
    for make in (headline, advice_table, get_figure("recommended").data):
        with pytest.raises(TstarError, match=r"3 conditions have BN .* --variant base"):
            make(load(store))
        made = make(load(store, variant="base"))
        assert "law's T" not in str(made)


def test_every_sentence_has_one_population(make_store):
    """Plain was run in one of three tasks: nothing is said of a gain over it."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].dataset == "easy"]

    found = headline(load(make_store(widths=(64,), change=change)))
    assert [line.over for line in found.lines] == ["bn_one", "best"]
    assert "In the 3 conditions that ran both" in found.sentences[0]
    assert "Nothing can be said about the gain over the plain model" in " ".join(found.sentences)


def test_a_bootstrap_over_two_data_sets_says_that_it_is_one(make_store, records):
    assert (
        "bootstrap over 3 data sets, their conditions and their seeds." in headline(records).method
    )
    two = headline(load(make_store(tasks=TASKS[:2])))
    assert "conditions and their seeds only: with 2 data sets" in two.method


def test_seeds_that_only_one_side_has_are_not_compared(make_store):
    """Without BN seed 0 alone was run, and is luckier: its own pair is compared."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].seed == 0]

    records = load(make_store(widths=(64,), change=change))
    wanted = []
    for plain, bn in records.pairs():
        there = bn.curve.only([0]).at(bn.law)
        wanted.append(100 * (there - plain.curve.by_seed(1.0)[0]))
    assert by_name(headline(records))["plain"].value.value == pytest.approx(np.mean(wanted))


def test_the_median_of_the_seeds_may_be_asked_for(store):
    records = load(store, average="median")
    gains = []
    for plain, bn in records.pairs():
        there, base = bn.curve.at_by_seed(bn.law), plain.curve.by_seed(1.0)
        gains.append(np.median([100 * (there[s] - base[s]) for s in range(3)]))
    assert by_name(headline(records))["plain"].value.value == pytest.approx(np.mean(gains))
    assert "(median)" in headline(records).method


def test_a_law_outside_the_grid_is_told(make_store):
    found = headline(load(make_store(grid=(8.0, 16.0, 32.0, 64.0), widths=(64,))))
    assert "In 3 of them the law's T lies outside the grid" in " ".join(found.sentences)
