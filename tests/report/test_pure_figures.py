"""Figures that need no runs, against formulas of their own."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tstar.formula.equation import temperature
from tstar.report.figures.boxes import box_of
from tstar.report.figures.closed_forms import closed_forms_data
from tstar.report.figures.cross_entropy import cross_entropy_data
from tstar.report.figures.largest_probability import largest_probability_data
from tstar.report.figures.outline import outline_data
from tstar.report.figures.softmax_outputs import softmax_outputs_data


def test_softmax_outputs_are_the_ratio_of_exponentials():
    data = softmax_outputs_data((1.0, 4.0, -2.0), (0.5, 1.0, 8.0))
    for T, row in zip(data.temperatures, data.probabilities, strict=True):
        raw = [math.exp(z / T) for z in (1.0, 4.0, -2.0)]
        assert row == pytest.approx([value / sum(raw) for value in raw], rel=1e-12)


def test_softmax_outputs_do_not_overflow():
    assert np.isfinite(softmax_outputs_data((5000.0, 0.0), (0.1, 1.0)).probabilities).all()


def test_cross_entropy_is_torch_s():
    torch = pytest.importorskip("torch")
    data = cross_entropy_data(num_classes=7, temperatures=(1, 3), smoothings=(0.0, 0.2))
    for s, smoothing in enumerate(data.smoothings):
        for t, T in enumerate(data.temperatures):
            for i in (0, 50, 120, 240):
                logits = torch.zeros(1, 7, dtype=torch.float64)
                logits[0, 2] = data.logits[i]
                want = torch.nn.functional.cross_entropy(
                    logits / T, torch.tensor([2]), label_smoothing=smoothing
                )
                assert data.losses[s, t, i] == pytest.approx(float(want), rel=1e-9, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 8), st.floats(0.02, 0.5), st.integers(2, 200))
def test_smoothing_has_its_minimum_where_the_formula_says(T, eps, K):
    where = T * math.log(1 + K * (1 - eps) / eps)
    near = where + np.array([-0.05, 0.0, 0.05]) * T
    loss = cross_entropy_data(K, (T,), (eps,), near).losses[0, 0]
    assert loss[1] < min(loss[0], loss[2])


def test_largest_probability_of_two_classes_is_a_logistic_normal():
    # The larger of two is sigmoid(|d|) with d ~ N(0, 2): quantiles follow from the normal's.
    box = largest_probability_data((2,), samples=40_000).boxes[0]
    for got, share in ((box.q1, 0.25), (box.median, 0.5), (box.q3, 0.75)):
        quantile = {0.25: 0.318639, 0.5: 0.674490, 0.75: 1.150349}[share]  # of |N(0, 1)|
        assert got == pytest.approx(1 / (1 + math.exp(-math.sqrt(2) * quantile)), abs=0.01)


def test_largest_probability_falls_with_the_number_of_classes_and_with_temperature():
    data = largest_probability_data(samples=500)
    assert data.classes == tuple(2**i for i in range(1, 11))
    medians = [box.median for box in data.boxes]
    assert medians == sorted(medians, reverse=True)
    hot = largest_probability_data(samples=500, temperature=4.0)
    assert all(h.median < m for h, m in zip(hot.boxes, medians, strict=True))
    assert largest_probability_data(samples=500) == data


def test_a_box_is_tukey_s():
    box = box_of([1, 2, 3, 4, 5, 100])
    assert (box.q1, box.median, box.q3) == (2.25, 3.5, 4.75)
    assert (box.low, box.high) == (1, 5)  # 100 is farther than 1.5·2.5 above 4.75
    assert (box.mean, box.n) == (pytest.approx(115 / 6), 6)


def test_the_outline_has_bn_just_before_the_output_layer_and_t_just_after():
    stages = outline_data(512, 10, 11.67).stages
    names = [stage.name for stage in stages]
    head = names.index("output layer f")
    assert names[head - 1] == "BatchNorm"
    assert names[head + 1] == "÷ 11.67"
    assert [i for i, stage in enumerate(stages) if stage.inserted] == [head - 1, head + 1]
    assert stages[head - 1].shape == "B × 512"
    assert stages[head].shape == "logits: B × 10"


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
