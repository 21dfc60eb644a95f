"""Accuracy over T and M."""

import statistics

import numpy as np
import pytest

from tests.report.planted import GRID, TASKS, rows
from tstar.report.figures.heatmaps import heatmaps_data
from tstar.report.records import load


def test_heatmaps_are_medians_and_frames_are_the_two_highest(records):
    data = heatmaps_data(records, "batch")
    assert [panel.title for panel in data.panels] == sorted(f"{t[0]} · resnet10" for t in TASKS)
    for panel in data.panels:
        dataset = panel.title.partition(" ")[0]
        for m, M in enumerate(panel.num_features):
            want = [
                statistics.median(
                    rows(records, dataset=dataset, num_features=M, norm="batch", temperature=T)
                )
                for T in GRID
            ]
            assert panel.accuracy[m] == pytest.approx(want)
            first, second = sorted(want, reverse=True)[:2]
            assert want[panel.best[m]] == first
            assert want[panel.second[m]] == second


def test_a_heatmap_leaves_a_gap_where_nothing_was_run(make_store):
    def gap(runs):
        return [r for r in runs if not (r[0].num_features == 64 and r[0].temperature == 64)]

    store = make_store(change=gap, tasks=TASKS[:1], seeds=1)
    panel = heatmaps_data(load(store), "none").panels[0]
    assert np.isnan(panel.accuracy).tolist() == [[False] * 6 + [True], [False] * 7]
