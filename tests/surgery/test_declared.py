"""What timm's models declare is believed where it names the output layer, and only there."""

import pytest
import torch
from torch import nn

import tstar


class Declares(nn.Module):
    """As timm's models: ``get_classifier`` and ``num_classes``. It cannot be run, so that only words help."""

    def __init__(self, head, num_classes=5):
        super().__init__()
        self.body, self.head, self.num_classes = nn.Linear(6, 8), head, num_classes

    def get_classifier(self):
        return self.head

    def forward(self, x):
        raise RuntimeError("too large to run")


@pytest.mark.parametrize(
    ("head", "path"),
    [
        (nn.Linear(8, 5), "head"),
        (nn.Sequential(nn.Dropout(), nn.Linear(8, 5)), "head.1"),
        (nn.ModuleDict({"pool": nn.Identity(), "fc": nn.Conv2d(8, 5, 1)}), "head.fc"),
    ],
    ids=["layer", "dropout and layer", "pooling and convolution"],
)
def test_the_layer_or_the_only_one_inside_is_taken(head, path):
    found = tstar.find_head(Declares(head))
    assert (found.path, found.num_features, found.num_classes) == (path, 8, 5)


@pytest.mark.parametrize(
    "head",
    [
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)),
        nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)),
        nn.Identity(),
    ],
    ids=["an MLP", "a projection to other than K", "nothing"],
)
def test_where_the_words_leave_a_doubt_a_run_must_tell(head):
    with pytest.raises(tstar.TstarError, match="example_input"):
        tstar.find_head(Declares(head))


def test_a_rival_with_as_many_outputs_leaves_a_doubt():
    model = Declares(nn.Sequential(nn.Dropout(), nn.Linear(8, 5)))
    model.auxiliary = nn.Linear(8, 5)
    with pytest.raises(tstar.TstarError, match="example_input"):
        tstar.find_head(model)


def test_a_declared_layer_inside_is_the_one_that_a_run_finds():
    timm = pytest.importorskip("timm")
    model = timm.create_model("test_convnext", num_classes=5)
    declared = tstar.find_head(model)
    assert declared.path == tstar.find_head(model, torch.randn(2, 3, 32, 32)).path
