"""The headline: its means against sums done by hand, and what its interval must do."""

from dataclasses import replace

import numpy as np
import pytest
from torch import nn

from tstar import TstarError, recommend
from tstar.curves.resampling import Estimate
from tstar.evidence.regret import advised
from tstar.report.headline import headline
from tstar.report.records import load

TASKS = (("easy", 1.5, 10), ("middle", 6.7, 10), ("hard", 25.5, 100))


def by_name(found):
    return {gain.baseline: gain for gain in found.gains}


def test_gain_and_regret_are_means_over_conditions(store):
    records = load(store)
    gains, over_bn, regrets = [], [], []
    for plain, bn in records.pairs():
        means = bn.curve.means()
        there = np.interp(np.log(bn.recommended), np.log(bn.temperatures), means)
        gains.append(100 * (there - plain.curve.means()[0]))
        over_bn.append(100 * (there - means[0]))
        regrets.append(100 * (means[bn.best] - there))
    found = headline(records)
    plain, bn_one = by_name(found)["plain"], by_name(found)["bn_one"]
    assert plain.gain.value == pytest.approx(np.mean(gains))
    assert bn_one.gain.value == pytest.approx(np.mean(over_bn))
    assert found.regret.value == pytest.approx(np.mean(regrets))
    assert plain.better == sum(gain > 0 for gain in gains)
    assert (found.conditions, plain.conditions, plain.datasets) == (6, 6, 3)
    assert plain.gain.low <= plain.gain.value <= plain.gain.high
    assert headline(records) == found


def test_the_report_s_and_evidence_s_regret_agree_on_one_store(store):
    from tstar.curves import read
    from tstar.evidence import cases, compare, scores

    for variant in (None, "cn"):
        rules = {"advised": lambda facts, v=variant: advised(facts, variant=v)}
        table = scores(cases(read(store)), rules)
        found = headline(load(store, variant=variant))
        assert found.regret.value == pytest.approx(compare(table)["regret"].item())
        assert by_name(found)["plain"].gain.value == pytest.approx(table["gain"].mean())
        assert by_name(found)["bn_one"].gain.value == pytest.approx(table["gain_bn"].mean())


def test_every_sentence_has_one_population(make_store):
    """Plain was run in one of three tasks: the gain is over it alone, the regret over all."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].dataset == "easy"]

    found = headline(load(make_store(widths=(64,), change=change)))
    assert by_name(found)["plain"].conditions == 1
    assert by_name(found)["bn_one"].conditions == found.conditions == 3
    first, second, third = found.sentences[:3]
    assert "In the one condition that ran both" in first
    assert "better in 1 of 1" in first or "better in 0 of 1" in first
    assert "In the 3 conditions" in second
    assert "In all 3 conditions" in third


def test_seeds_that_only_one_side_has_are_not_compared(make_store):
    def change(rows):
        kept = []
        for spec, result in rows:
            if spec.norm == "none" and spec.seed > 0:
                continue
            if spec.norm == "batch" and spec.seed > 0:
                result["test_accuracy"] = 0.99  # would look like a gain
            kept.append((spec, result))
        return kept

    store = make_store(tasks=TASKS[:1], widths=(64,), seeds=2, noise=0.0, change=change)
    records = load(store)
    sweep = records.with_norm("batch")[0]
    one = sweep.curve.only([0])
    want = 100 * (one.at(sweep.recommended) - sweep.condition.plain([0]))
    assert by_name(headline(records))["plain"].gain.value == pytest.approx(want)


def test_conditions_that_agree_leave_only_the_seeds(make_store):
    # One width and one task, copied: no spread between conditions; no noise: none between seeds.
    tasks = tuple((name, 2.0, 10) for name in "abc")
    quiet = headline(load(make_store(tasks=tasks, widths=(64,), noise=0.0))).gains[0].gain
    assert quiet.high - quiet.low < 1e-9
    noisy = headline(load(make_store("noisy.db", tasks=tasks, widths=(64,), noise=0.02)))
    assert noisy.gains[0].gain.high - noisy.gains[0].gain.low > 0.3


def test_without_plain_runs_it_says_so(make_store):
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), norms=("batch",), seeds=2)))
    assert [gain.baseline for gain in found.gains] == ["bn_one"]
    assert "Nothing can be said about the gain over the plain model" in found.sentence
    assert found.few
    assert "mean little" in found.method


def test_without_t_1_nothing_is_said_about_a_gain(make_store):
    grid = (2.0, 4.0, 8.0)
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), grid=grid, seeds=1)))
    assert found.gains == ()
    assert "Nothing can be said" in found.sentence


def test_a_regret_is_said_as_a_distance_and_never_negative(records):
    found = headline(records)

    def said(value, low, high):
        return replace(found, regret=Estimate(value, low, high))

    below, above, both = said(0.42, 0.1, 0.61), said(-0.2, -0.31, -0.05), said(-0.01, -0.05, 0.03)
    assert "was 0.42 points below that at the best T of the grid (95 % interval 0.10 to 0.61 below)" in below.sentence  # fmt: skip
    assert "was 0.20 points above" in above.sentence
    assert "(95 % interval 0.05 to 0.31 above)" in above.sentence
    assert "was 0.01 points above" in both.sentence
    assert both.span == "0.05 above to 0.03 below"
    assert said(-0.004, -0.004, 0.0).side == "below"  # 0.00 of either
    assert "In the one condition with BN" in replace(found, conditions=1).sentence


def test_the_law_s_t_is_not_all_that_recommend_says(make_store):
    """M = 16, K = 10, SGD at 0.3, 30 steps of 50: recommend advises three times the rate and the T of that."""
    told = {"optimizer": "sgd", "lr": 0.3, "steps": 30, "batch_size": 50, "momentum": 0.9}
    facts = {"num_features": 16, "num_classes": 10, **told}
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 10))
    advice = recommend(model, scenario="scratch", **told)
    assert advice.lr_factor == 3
    assert float(advice) == pytest.approx(advised(facts | {"lr": 0.9}), rel=1e-6)
    assert float(advice) > 1.5 * advised(facts)
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1)))
    assert found.advice == "tstar's own, at each run's own learning rate"
    assert "recommend may advise another rate" in found.method
    assert "advised T" not in found.sentence


def test_a_law_s_t_outside_the_grid_is_told(make_store):
    grid = (32.0, 64.0, 128.0)
    found = headline(load(make_store(tasks=TASKS[:1], widths=(64,), grid=grid, seeds=1)))
    assert found.extrapolated == 1
    assert "outside the grid" in found.sentence


def test_without_a_grid_there_is_no_headline(make_store):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match="A headline needs"):
        headline(load(only))
