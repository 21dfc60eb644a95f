"""Reliability diagrams: the data against NumPy's histogram, pooling, files, and the drawing's bars."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tstar import TstarError, data
from tstar.comparing import compare_methods, draw_reliability, reliability_data, save, summarize
from tstar.comparing.reliability import pooled
from tstar.methods.calibration import reliability
from tstar.training import Config


def random_logits(n, seed, classes=5):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=generator)
    return logits, torch.randint(classes, (n,), generator=generator)


@pytest.fixture(scope="module")
def comparison():
    pytest.importorskip("sklearn")
    digits = data.load("digits").subset(200, 100)
    vectors = replace(
        digits,
        domain="vector",
        x_train=digits.x_train.flatten(1).float() / 255,
        x_test=digits.x_test.flatten(1).float() / 255,
    )
    config = Config(epochs=2, augment=False, batch_size=64)
    names = ["default", "temperature-scaling", "temperature-check:points=2"]
    return compare_methods(vectors, "mlp", names, seeds=2, num_features=16, config=config)


def test_the_bins_are_those_of_a_histogram():
    logits, targets = random_logits(400, seed=1)
    z = logits.double().numpy()
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    confidence, right = p.max(1), p.argmax(1) == targets.numpy()
    found = reliability(logits, targets, bins=10)
    count, edges = np.histogram(confidence, bins=10, range=(0, 1))
    hits, _ = np.histogram(confidence[right], bins=10, range=(0, 1))
    np.testing.assert_allclose(found.edges, edges)
    np.testing.assert_array_equal(found.count, count)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found.accuracy, hits / count)


def test_pooling_is_the_diagram_of_all_samples():
    parts = [random_logits(n, seed=n) for n in (30, 200, 7)]
    together = reliability(
        torch.cat([logits for logits, _ in parts]), torch.cat([targets for _, targets in parts])
    )
    found = pooled([reliability(*part) for part in parts])
    assert found.count == together.count
    np.testing.assert_allclose(found.confidence, together.confidence)
    np.testing.assert_allclose(found.accuracy, together.accuracy)
    with pytest.raises(TstarError, match="same bins"):
        pooled([reliability(*parts[0]), reliability(*parts[1], bins=3)])


def test_a_run_carries_the_diagram_of_the_model_that_was_scored(comparison):
    """Its bins give back the run's own accuracy and calibration error."""
    for run in comparison.runs:
        found = run.reliability
        filled = [b for b, n in enumerate(found.count) if n]
        assert sum(found.count) == 100
        accuracy = sum(found.count[b] * found.accuracy[b] for b in filled) / 100
        gap = sum(found.count[b] * abs(found.accuracy[b] - found.confidence[b]) for b in filled)
        assert accuracy == pytest.approx(run.test_accuracy)
        assert gap / 100 == pytest.approx(run.ece, abs=1e-5)


def test_scaling_moves_confidence_and_not_accuracy(comparison):
    first = {run.method: run for run in comparison.runs if run.seed == 0}
    before, after = first["default"].reliability, first["temperature-scaling"].reliability
    assert before.count != after.count
    assert first["default"].test_accuracy == first["temperature-scaling"].test_accuracy


def test_saved_data_apart_from_the_drawing(comparison, tmp_path):
    pytest.importorskip("matplotlib")
    paths = save(
        comparison.runs, summarize(comparison.runs), tmp_path, baseline="default", about="x"
    )
    assert {path.name for path in paths} == {
        *("runs.csv", "table.csv", "table.md", "reliability.csv", "reliability.svg")
    }
    with (tmp_path / "reliability.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for run in comparison.runs:
        mine = [x for x in lines if (x["method"], x["seed"]) == (run.method, str(run.seed))]
        assert sum(int(x["count"]) for x in mine) == 100
        for x in mine:
            assert float(x["low"]) <= float(x["confidence"]) <= float(x["high"])
    assert "reliability" not in (tmp_path / "runs.csv").read_text(encoding="utf-8")


def test_the_drawing_shows_the_data(comparison):
    pytest.importorskip("matplotlib")
    panels = reliability_data(comparison.runs)
    assert [p.method for p in panels] == [
        "default",
        "temperature-scaling",
        "temperature-check:points=2",
    ]
    assert all(p.n == 2 and sum(p.diagram.count) == 200 for p in panels)
    figure = draw_reliability(panels)
    for axes, panel in zip(figure.axes, panels, strict=True):
        want = [a for a in panel.diagram.accuracy if not math.isnan(a)]
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(want)


def test_runs_that_failed_have_no_panel(comparison):
    failed = [replace(run, status="failed", reliability=None) for run in comparison.runs]
    assert reliability_data(failed) == ()
    with pytest.raises(TstarError, match="one finished run"):
        draw_reliability(())
