"""The headline: its means against sums done by hand, and what its interval must do."""

import numpy as np
import pytest

from tstar import TstarError
from tstar.report.headline import headline
from tstar.report.records import load

TASKS = (("easy", 1.5, 10), ("middle", 6.7, 10), ("hard", 25.5, 100))


def test_gain_and_regret_are_means_over_conditions(store):
    records = load(store)
    gains, regrets = [], []
    for plain, bn in records.pairs():
        means = [np.mean(values) for values in bn.condition.accuracies]
        there = np.interp(bn.recommended, bn.temperatures, means)
        gains.append(100 * (there - np.mean(plain.condition.accuracies[0])))
        regrets.append(100 * (means[bn.best] - there))
    found = headline(records)
    assert found.gain.value == pytest.approx(np.mean(gains))
    assert found.regret.value == pytest.approx(np.mean(regrets))
    assert found.better == sum(gain > 0 for gain in gains)
    assert (found.conditions, found.compared, found.datasets) == (6, 6, 3)
    assert (found.against, found.over) == ("without BN", "data sets")
    assert found.gain.low <= found.gain.value <= found.gain.high
    assert headline(records) == found


def test_conditions_that_agree_leave_only_the_seeds(make_store):
    # One width and one task, copied: no spread between conditions; no noise: none between seeds.
    tasks = tuple((name, 2.0, 10) for name in "abc")
    quiet = headline(load(make_store(tasks=tasks, widths=(64,), noise=0.0)))
    assert quiet.gain.high - quiet.gain.low < 1e-9
    noisy = headline(load(make_store("noisy.db", tasks=tasks, widths=(64,), noise=0.02)))
    assert noisy.gain.high - noisy.gain.low > 0.3


def test_without_plain_runs_it_compares_with_bn_at_t_1(make_store):
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), norms=("batch",), seeds=2)))
    assert found.against == "with BN"
    assert found.over == "conditions"
    assert found.few
    assert "means little" in found.method


def test_without_t_1_nothing_is_said_about_a_gain(make_store):
    grid = (2.0, 4.0, 8.0)
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), grid=grid, seeds=1)))
    assert found.gain is None
    assert "nothing can be said" in found.sentence


def test_without_a_grid_there_is_no_headline(make_store):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match="A headline needs"):
        headline(load(only))
