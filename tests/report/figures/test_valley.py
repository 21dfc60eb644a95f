"""The valley of α and β: planted coefficients lie in it, and runs without a peak leave them open."""

import numpy as np
import pytest

from tstar.errors import TstarError
from tstar.report.figures.valley import valley_data
from tstar.report.records import load

# The planted runs with BN peak at 0.8·sqrt(M).
PLANTED = {"tasks": (("easy", 1.5, 10),), "widths": (64, 256, 1024), "norms": ("batch",)}
FINE = tuple(2 ** (i / 2) for i in range(13))


def test_planted_coefficients_lie_in_the_valley(make_store):
    (panel,) = valley_data(load(make_store(grid=FINE, noise=0.0, **PLANTED))).panels
    assert panel.width == 256
    assert panel.best == pytest.approx((0.8, 0), abs=0.5)
    assert not panel.open

    def lost(alpha, T):
        t = int(np.argmin(np.abs(np.log(np.array(panel.temperature) / T))))
        return panel.lost[t, int(np.argmin(np.abs(np.array(panel.alpha) - alpha)))]

    assert lost(0.8, 12.8) < 0.2
    assert lost(0.8, 1.6) > 3
    assert panel.lost.min() == 0


def test_runs_without_a_peak_leave_both_open(make_store):
    def flat(rows):
        return [(spec, {**r, "val_accuracy": 0.8, "test_accuracy": 0.8}) for spec, r in rows]

    (panel,) = valley_data(load(make_store(change=flat, seeds=1, **PLANTED))).panels
    assert panel.open
    assert not panel.lost.any()
    assert panel.alpha[-1] == 10  # drawn to the bound


def test_every_environment_has_a_panel_and_all_together_the_first(make_store):
    tasks = (("easy", 1.5, 10), ("hard", 25.5, 100))
    found = valley_data(load(make_store(**{**PLANTED, "tasks": tasks}, seeds=1)))
    assert found.panels[0].title == "all 6 conditions"
    assert len(found.panels) == 3


def test_one_width_has_no_valley(make_store):
    with pytest.raises(TstarError, match="two feature counts"):
        valley_data(load(make_store(**{**PLANTED, "widths": (64,)}, seeds=1)))
