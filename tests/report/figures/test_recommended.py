"""The advised T beside the best one."""

import numpy as np
import pytest

from tests.report.planted import GRID, TASKS
from tstar.report.figures.recommended import plateau, recommended_data
from tstar.report.records import load


def test_regret_is_best_minus_interpolated(records):
    data = recommended_data(records)
    assert len(data.points) == 6
    for point, sweep in zip(data.points, records.with_norm("batch"), strict=True):
        means = sweep.curve.means()
        interpolated = np.interp(np.log(sweep.recommended), np.log(GRID), means)
        assert point.best == GRID[int(np.argmax(sweep.curve.means("val")))]
        assert point.regret == pytest.approx(100 * (means[GRID.index(point.best)] - interpolated))
        assert point.low <= point.best <= point.high
    assert data.mean_regret == pytest.approx(np.mean([p.regret for p in data.points]))


def test_a_plateau_ends_where_the_accuracy_leaves_the_standard_error(make_store):
    def flat(runs):
        for spec, result in runs:
            # The best is in the middle, its neighbors less than its standard error, 0.0006, below.
            value = {4.0: 0.8, 8.0: 0.8003, 16.0: 0.8}.get(spec.temperature, 0.5)
            result["test_accuracy"] = result["val_accuracy"] = value + 0.001 * spec.seed
        return runs

    store = make_store(change=flat, tasks=TASKS[:1], widths=(64,), norms=("batch",))
    assert plateau(load(store).sweeps[0]) == (4.0, 16.0)
