"""The closed forms on one axis."""

import math

import pytest

from tests.report.planted import GRID, TASKS
from tstar.formula.equation import temperature
from tstar.report.figures.closed_forms import closed_forms_data


def test_rules_are_the_closed_forms():
    panel = closed_forms_data(None, num_classes=100, csg=5.0, widths=(64, 1024)).panels[0]
    lines = {line.name: line.temperatures for line in panel.lines}
    assert lines["default"] == (1, 1)
    assert lines["sqrt-m"] == (8, 32)
    assert lines["heated-up"] == (0.5, 2)
    scale = math.sqrt(2) * math.log(99)
    assert lines["adacos-fixed"] == pytest.approx([8 / scale / 3**0.5, 32 / scale / 3**0.5])
    assert lines["mup-readout"] == (1, 16)
    assert lines["ours-csgcn"][1] == temperature(1024, 100, 5.0, variant="csgcn")


def test_a_rule_without_its_facts_is_missing_not_wrong():
    panel = closed_forms_data(None, num_classes=None, csg=None, widths=(64,)).panels[0]
    lines = {line.name: line.temperatures[0] for line in panel.lines}
    assert math.isnan(lines["adacos-fixed"])
    assert math.isnan(lines["ours-csgcn"])
    assert not math.isnan(lines["ours-base"])


def test_rules_carry_the_best_temperatures_that_were_seen(records):
    data = closed_forms_data(records)
    assert len(data.panels) == len(TASKS)
    for panel in data.panels:
        assert {s.num_features for s in panel.seen} == {64, 256}
        assert {s.temperature for s in panel.seen} <= set(GRID)
    assert {p.num_classes for p in data.panels} == {10, 100}
