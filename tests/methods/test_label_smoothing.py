"""Smoothed labels, alone and with every other method."""

import pytest
import torch
from torch import nn

from tests.methods.networks import (
    ALL,
    Net,
    X,
    Y,
    ce,
    facts,
    loss_of,
)
from tstar import methods


@pytest.mark.parametrize("epsilon", [0.1, 0.35])
def test_label_smoothing(epsilon):
    value, z, _ = loss_of("label-smoothing", epsilon=epsilon)
    assert value == pytest.approx(ce(z, Y, epsilon), rel=1e-12)
    torchs = nn.CrossEntropyLoss(label_smoothing=epsilon)(torch.from_numpy(z), Y)
    assert value == pytest.approx(torchs.item(), rel=1e-12)


def test_label_smoothing_has_the_papers_default():
    value, z, _ = loss_of("label-smoothing")
    assert value == pytest.approx(ce(z, Y, 0.1), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_every_method_combines_with_label_smoothing(name):
    """The smoothed loss minus the plain one is ε·(mean over k of −log p_k − (−log p_y)), on the hard part."""
    epsilon, scale = 0.2, 0.1 if methods.get(name).needs & {"teacher"} else 1.0
    plain = methods.get(name).prepare(Net(), facts())
    smooth = methods.get(name).prepare(Net(), facts(label_smoothing=epsilon))
    logits = plain.model(X)
    z = logits.detach().numpy()
    difference = smooth.loss(smooth.model(X), Y, X) - plain.loss(logits, Y, X)
    expected = scale * (ce(z, Y, epsilon) - ce(z, Y))
    if name == "label-smoothing":  # it brings its own ε
        expected = 0.0
    assert difference.item() == pytest.approx(expected, abs=1e-9)
