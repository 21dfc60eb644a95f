"""The closed forms on one axis."""

import math
from dataclasses import replace

import pytest

from tests.report.planted import EPOCHS, GRID, TASKS
from tstar.evidence.regret import advised
from tstar.formula.equation import temperature
from tstar.report.figures.closed_forms import closed_forms_data, draw_closed_forms
from tstar.report.records import load
from tstar.training import Config


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


def test_the_law_has_a_line_where_all_runs_share_one_training(records, make_store):
    for panel in closed_forms_data(records).panels:
        (law,) = (line for line in panel.lines if line.name == "law")
        told = {"optimizer": "sgd", "lr": 0.1, "steps": 40, "momentum": 0.9, "batch_size": 128}
        facts = {"num_features": 64, "num_classes": panel.num_classes, **told}
        assert law.temperatures[panel.num_features.index(64)] == pytest.approx(advised(facts))
    drawn = draw_closed_forms(closed_forms_data(records))
    assert "tstar's law, for this training" in [t.get_text() for t in drawn.legends[0].get_texts()]
    assert "law" not in {line.name for line in closed_forms_data(None).panels[0].lines}
    two = load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, lr=(0.1, 0.01)))
    assert "law" not in {line.name for line in closed_forms_data(two).panels[0].lines}


def test_the_law_has_no_line_for_a_training_that_it_does_not_know(make_store):
    def change(rows):
        config = Config(optimizer="./kit.py:lion", epochs=EPOCHS)
        return [(replace(spec, config=config), result) for spec, result in rows]

    odd = load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change))
    assert "law" not in {line.name for line in closed_forms_data(odd).panels[0].lines}
