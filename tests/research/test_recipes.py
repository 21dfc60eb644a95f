"""The table is made from the runs: what ships is what the script makes, and no row lowers a rate."""

import json
import math

import numpy as np
import pytest

from research.recipes import SHIPPED, candidates, interval, left_out, wanted
from research.trainings import measured


@pytest.fixture(scope="module")
def unseen():
    return list(measured("unseen"))


def test_every_row_that_ships_is_a_candidate_and_in_its_place():
    shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))["rows"]
    every = [(c.row.name, c.row.do, dict(c.row.where)) for c in candidates()]
    places = [every.index((r["name"], r["do"], r["where"])) for r in shipped]
    assert places == sorted(places)
    bases = [n for n, c in enumerate(candidates()) if c.rule == "base"]
    assert {*bases} <= {*places}
    assert shipped[-1]["where"] == {}


def test_no_row_lowers_a_rate_a_decay_or_a_head_s_rate(unseen):
    for m in unseen:
        for candidate in candidates():
            arm = wanted(m, candidate.row)
            assert min(arm.rate, arm.decay, arm.head) >= 1.0
            assert arm.head * m.case.training.lr <= max(0.0101, m.case.training.lr) or (
                m.case.training.family == "sgd"
            )


def test_an_interval_holds_the_mean_and_is_a_point_for_equal_values(unseen):
    values = np.random.default_rng(0).normal(1.0, 2.0, len(unseen))
    mean, low, high = interval(values, unseen)
    assert low < mean < high
    assert mean == pytest.approx(values.mean())
    assert interval(np.full(len(unseen), 1.5), unseen) == pytest.approx((1.5, 1.5, 1.5))


def test_what_one_network_gained_does_not_choose_a_row_for_itself(unseen):
    """A gain of one network alone is left out; one that all share stays."""
    name = unseen[0].network
    alone = np.array([30.0 if m.network == name else 0.0 for m in unseen])
    assert left_out(unseen, alone) == 0.0
    everywhere = np.array([1.0 + 0.1 * math.sin(n) for n in range(len(unseen))])
    assert left_out(unseen, everywhere) == pytest.approx(everywhere.mean())
