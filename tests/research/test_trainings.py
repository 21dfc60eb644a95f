"""Measured trainings: users and their arms are read from the runs, as they were drawn."""

import math
from collections import Counter

import pytest

from research import fresh, fresh_page
from research.trainings import PLAIN, Arm, from_the_fresh_test, from_the_paper, measured
from tstar.lab.evidence import atlas


@pytest.fixture(scope="module")
def second():
    return list(measured("atlas2"))


def test_every_training_has_its_plain_model_and_the_law_s_temperature(second):
    new = [m for m in second if m.case.training.scenario == "scratch"]
    assert (len(second), len(new)) == (272, 259)
    for m in new:
        assert set(m.runs[PLAIN]) == {0, 1}, m
        assert m.gain(Arm(True, "law")) is not None, m
    assert Counter(m.widened for m in new if m.case.norms != "frozen") == {True: 120, False: 91}


def test_a_run_belongs_to_one_training(second):
    runs = atlas().query("atlas == 2 and method == 'fixed'")
    counted = sum(len(by) for m in second for arm, by in m.runs.items())
    rivals = atlas().query("atlas == 4 and method == 'fixed'")
    assert counted <= len(runs) + len(rivals) + 82 * 3
    assert counted > len(runs) - 20  # five designs were given up


def test_a_tuned_user_has_the_rate_of_the_best_plain_run(second):
    for own, tuned in zip(second, measured("atlas2", tuned=True), strict=True):
        t = tuned.case.training
        assert t.tuned
        assert own.data == tuned.data
        assert own.runs.keys() >= {PLAIN}
        assert tuned.gain(PLAIN) == 0.0


def test_the_nearest_arm_differs_in_rate_alone_and_at_most_twofold(second):
    for m in second:
        for wanted in (Arm(rate=3.0), Arm(True, "law", 5.0), Arm(True, "law", 1000.0)):
            arm = m.nearest(wanted)
            if arm is not None:
                assert (arm.norm, arm.temperature) == (wanted.norm, wanted.temperature)
                assert abs(math.log(arm.rate / wanted.rate)) < math.log(2.02)
    assert all(m.nearest(Arm(True, "law", 1000.0)) is None for m in second)


def test_the_paper_s_trainings_are_its_cells():
    every = list(from_the_paper())
    assert len(every) == 36
    isic = next(m for m in every if (m.network, m.data) == ("ResNet50", "GTS"))
    assert isic.runs[PLAIN][0] == pytest.approx(70.16)
    assert {m.case.training.epochs for m in every} == {None}
    assert all(m.gain(Arm(True, "cn")) is not None for m in every)


def test_the_fresh_test_s_trainings_gain_what_its_page_says():
    """Matched by what the arms are, not by their names."""
    found = fresh.exported()
    pages = [[*fresh_page.gains(training, found)] for training in fresh.drawn()]
    pages = [{line["arm"]: line["gain"] for line in lines} for lines in pages if lines]
    every = list(from_the_fresh_test())
    assert len(every) == len(pages)
    for m, gains in zip(every, pages, strict=True):
        assert m.gain(Arm(rate=3.0)) == pytest.approx(gains["rate × 3"])
        new = m.case.training.scenario == "scratch" and "probe" not in m.network
        paper = Arm(True, "cn") if new else Arm(True, "csgcn")
        assert m.gain(paper) == pytest.approx(gains[f"BN, the paper's {paper.temperature}"])
        assert len(m.runs) <= len(gains) + 1
