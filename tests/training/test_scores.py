"""Accuracy, NLL and calibration error against outside references."""

import pytest
import torch
from torch import nn

from tstar.training import calibration_error, evaluate, predict


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 10])
def test_calibration_error_is_that_of_torchmetrics(seed, classes):
    functional = pytest.importorskip("torchmetrics.functional.classification")
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(500, classes, generator=random)
    targets = torch.randint(classes, (500,), generator=random)
    probabilities = logits.softmax(1)
    theirs = functional.multiclass_calibration_error(
        probabilities, targets, num_classes=classes, n_bins=15, norm="l1"
    )
    assert calibration_error(probabilities, targets) == pytest.approx(float(theirs), abs=1e-6)


def test_calibration_error_of_extremes():
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert calibration_error(sure, torch.tensor([0, 0])) == 0
    assert calibration_error(sure, torch.tensor([1, 1])) == 1
    assert calibration_error(sure, torch.tensor([0, 1])) == 0.5


def test_scores_are_the_textbook_ones():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    scores = evaluate(logits, torch.tensor([0, 1, 1]))
    assert scores.accuracy == pytest.approx(2 / 3)
    by_hand = [
        -torch.log_softmax(row, 0)[label] for row, label in zip(logits, [0, 1, 1], strict=True)
    ]
    assert scores.loss == pytest.approx(float(sum(by_hand)) / 3)


@pytest.mark.parametrize("training", [True, False])
def test_predicting_uses_eval_mode_and_restores_the_mode(training):
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 3)).train(training)
    model[1].eval()  # a frozen norm stays frozen
    x = torch.randn(10, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    logits = predict(model, x, batch_size=3)
    assert [module.training for module in model] == [training, False, training]
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()
    torch.testing.assert_close(logits, model(x).detach())


@pytest.mark.parametrize(
    ("shape", "expected"), [((4,), 512), ((3, 32, 32), 512), ((3, 96, 96), 56), ((3, 512, 512), 16)]
)
def test_large_samples_are_measured_in_small_batches(shape, expected):
    sizes = []

    class Sizes(nn.Module):
        def forward(self, x):
            sizes.append(len(x))
            return x.flatten(1)[:, :2]

    predict(Sizes(), torch.zeros(1, *shape).expand(600, *shape))
    assert sizes[0] == expected
    assert sum(sizes) == 600


def test_a_confidence_on_an_edge_belongs_to_the_bin_above():
    functional = pytest.importorskip("torchmetrics.functional.classification")
    probabilities = torch.tensor([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    targets = torch.tensor([2, 0])
    theirs = functional.multiclass_calibration_error(probabilities, targets, 3, n_bins=2, norm="l1")
    ours = calibration_error(probabilities, targets, bins=2)
    assert ours == pytest.approx((0.5 + 0.6) / 2) == pytest.approx(float(theirs))
