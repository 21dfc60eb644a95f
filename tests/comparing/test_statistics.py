"""From runs to a table: means, marks, and the paired test, against scipy and by hand."""

import statistics

import pytest
from scipy import stats

from tests.comparing.planted import BETTER, DEFAULT, NOISE, runs
from tstar import TstarError
from tstar.comparing import Run, paired, summarize, to_markdown
from tstar.comparing.statistics import holm


def test_mean_spread_and_marks():
    rows = {r.method: r for r in summarize(runs(default=DEFAULT, better=BETTER, noise=NOISE))}
    assert rows["better"].mean == pytest.approx(100 * statistics.mean(BETTER))
    assert rows["better"].sd == pytest.approx(100 * statistics.stdev(BETTER))
    assert rows["better"].n == 5
    assert [rows[m].rank for m in ("better", "default", "noise")] == [1, 2, 2]  # a tie for second


def test_the_paired_test_is_scipys_on_the_differences():
    test = paired([100 * x for x in BETTER], [100 * x for x in DEFAULT])
    differences = [100 * (a - b) for a, b in zip(BETTER, DEFAULT, strict=True)]
    one_sample = stats.ttest_1samp(differences, 0)
    assert test.p_t == pytest.approx(one_sample.pvalue)
    interval = one_sample.confidence_interval(0.95)
    assert (test.low, test.high) == pytest.approx((interval.low, interval.high))
    assert test.p_wilcoxon == pytest.approx(2 / 2**5)  # all five of one sign, exact
    assert test.difference == pytest.approx(statistics.mean(differences))


def test_pairing_matters():
    """The same scores on other seeds: the same means, and another answer."""
    shuffled = [BETTER[i] for i in (3, 2, 1, 0, 4)]
    a = paired(BETTER, DEFAULT)
    b = paired(shuffled, DEFAULT)
    assert a.difference == pytest.approx(b.difference)
    assert a.p_t < 0.01 < b.p_t


def test_verdicts_are_not_fooled_by_noise():
    rows = {r.method: r for r in summarize(runs(default=DEFAULT, better=BETTER, noise=NOISE))}
    assert rows["better"].paired.verdict == "better"
    assert rows["noise"].paired.verdict == "no evidence"
    assert rows["default"].paired is None
    two = {r.method: r for r in summarize(runs(default=DEFAULT[:2], better=[0.9, 0.92001]))}
    assert two["better"].paired.verdict == "no evidence"


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "c": 0.06, "b": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}


def test_identical_scores_and_too_few_of_them():
    assert paired(DEFAULT, DEFAULT).p_t == 1.0
    same_gap = paired([2.0, 3.0], [1.0, 2.0])
    assert same_gap.difference == 1.0
    assert same_gap.p_t is None
    assert paired([2.0], [1.0]).p_t is None
    with pytest.raises(TstarError, match="as many"):
        paired([1.0], [])


def test_a_failed_run_is_shown_left_out_of_the_pairs_and_never_marked():
    rows = {
        r.method: r for r in summarize(runs(default=DEFAULT, shaky=[0.99, None, 0.98, 0.99, 0.97]))
    }
    shaky = rows["shaky"]
    assert (shaky.n, shaky.failed, shaky.rank) == (4, 1, None)
    assert shaky.paired.n == 4
    assert shaky.mean == pytest.approx(98.25)
    text = to_markdown([*rows.values()])
    assert "4 (1 failed)" in text
    assert "no teacher" in text
    gone = {r.method: r for r in summarize(runs(default=DEFAULT, gone=[None] * 5))}["gone"]
    assert gone.mean is None
    assert gone.paired is None


def test_a_diverged_run_counts_as_chance_and_is_shown():
    gone = [Run("wild", seed, "diverged", test_accuracy=0.1, error="NaN") for seed in range(5)]
    rows = summarize([*runs(default=DEFAULT), *gone])
    assert (rows[1].n, rows[1].failed, rows[1].diverged, rows[1].rank) == (5, 0, 5, 2)
    assert rows[1].mean == pytest.approx(10.0)
    assert rows[1].paired.verdict == "worse"
    assert "5 (5 diverged)" in to_markdown(rows)
