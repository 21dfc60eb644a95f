"""Accuracy over T and M."""

import math
import statistics

import numpy as np
import pytest

from tests.report.planted import GRID, TASKS, rows
from tstar.report.figures.closed_forms import closed_forms_data
from tstar.report.figures.heatmaps import heatmaps_data
from tstar.report.records import load
from tstar.report.tables.own import conditions_table


def val(records, **wanted):
    """Mean validation accuracy of the runs with these columns, straight from the store."""
    frame = records.frame
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    return statistics.fmean(frame["val_accuracy"])


def test_heatmaps_are_medians_and_frames_are_the_two_best_by_validation(records):
    data = heatmaps_data(records, "batch")
    trained = "resnet10 · sgd, lr 0.1, 40 steps"
    assert [panel.title for panel in data.panels] == sorted(f"{t[0]} · {trained}" for t in TASKS)
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
            here = {"dataset": dataset, "num_features": M, "norm": "batch"}
            chosen = [val(records, **here, temperature=T) for T in GRID]
            first, second = sorted(chosen, reverse=True)[:2]
            assert chosen[panel.best[m]] == first
            assert chosen[panel.second[m]] == second


def test_a_page_has_one_best_t(make_store):
    """Test accuracy is misled at one T: frames, circles and the table name the T that validation chose."""

    def change(rows):
        for spec, result in rows:
            result["val_accuracy"] = 0.9 - 0.1 * abs(math.log2(spec.temperature / 4))
            result["test_accuracy"] = 0.99 if spec.temperature == 32 else 0.5
        return rows

    options = {"tasks": TASKS[:1], "widths": (64,), "norms": ("batch",), "seeds": 2}
    found = load(make_store(**options, change=change))
    panel = heatmaps_data(found, "batch").panels[0]
    assert panel.temperatures[panel.best[0]] == 4
    assert panel.temperatures[panel.second[0]] == 2  # of equals the lower
    assert [seen.temperature for seen in closed_forms_data(found).panels[0].seen] == [4]
    table = conditions_table(found)
    assert table.blocks[0].rows[0][table.columns.index("best T")].value == 4


def test_a_heatmap_leaves_a_gap_where_nothing_was_run(make_store):
    def gap(runs):
        return [r for r in runs if not (r[0].num_features == 64 and r[0].temperature == 64)]

    store = make_store(change=gap, tasks=TASKS[:1], seeds=1)
    panel = heatmaps_data(load(store), "none").panels[0]
    assert np.isnan(panel.accuracy).tolist() == [[False] * 6 + [True], [False] * 7]
