"""Curves with and without the norm."""

import statistics

import pytest

from tests.report.planted import GRID, rows
from tstar.report.figures.norm_sweep import norm_sweep_data


def test_norm_sweep_keeps_the_two_sides_apart(records):
    panel = norm_sweep_data(records).panels[0]
    dataset = panel.title.partition(" ")[0]
    M = int(panel.title.rpartition("= ")[2])
    for line, norm in ((panel.plain, "none"), (panel.bn, "batch")):
        want = [
            statistics.mean(
                rows(records, dataset=dataset, num_features=M, norm=norm, temperature=T)
            )
            for T in GRID
        ]
        assert line.mean == pytest.approx(want)
