"""What kind of network it is, told from its modules."""

import pytest
import torchvision
from torch import nn

from tstar.models import build
from tstar.surgery.network import attends, is_mostly_frozen, norms_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("vgg9", "batch-norms"),
        ("resnet10", "batch-norms"),
        ("vit4", "layer-norms"),
        ("convnext4", "layer-norms"),
        ("cnn4", "no norms"),
    ],
)
def test_our_networks(name, kind):
    model = build(name, 5, num_features=16, seed=0)
    assert norms_of(model, model.get_submodule("classifier")) == kind


def test_a_frozen_backbone_is_told_by_what_is_trained():
    model = build("vgg9", 5, num_features=16, seed=0)
    layer = model.get_submodule("classifier")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter in layer.parameters():
        parameter.requires_grad_(True)
    assert norms_of(model, layer) == "frozen"
    assert norms_of(layer, layer) == "frozen"


def test_what_an_optimizer_does_not_hold_is_not_trained():
    model = build("vgg9", 5, num_features=16, seed=0)
    layer = model.get_submodule("classifier")
    held = {id(p) for p in layer.parameters()}
    assert norms_of(model, layer, held) == "frozen"
    held.add(id(next(model.parameters())))
    assert norms_of(model, layer, held) == "batch-norms"
    next(model.parameters()).requires_grad_(False)
    assert norms_of(model, layer, held) == "frozen"


def test_group_norm_and_batch_norm():
    head = nn.Linear(4, 2)
    assert norms_of(nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4), head), head) == "layer-norms"  # fmt: skip
    mixed = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.BatchNorm1d(4), head)
    assert norms_of(mixed, head) == "batch-norms"


def test_a_network_of_a_library():
    model = torchvision.models.alexnet(num_classes=3)
    assert norms_of(model, model.classifier[6]) == "no norms"


def test_mostly_frozen_is_told_by_the_number_of_parameters():
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 8, bias=False))
    assert not is_mostly_frozen(model)
    model[0].requires_grad_(False)
    assert is_mostly_frozen(model)
    model[1] = nn.Linear(10, 10, bias=False)  # half of them
    assert not is_mostly_frozen(model)


@pytest.mark.parametrize(("name", "is_one"), [("vit4", True), ("resnet10", False)])
def test_a_transformer_is_told_by_its_attention(name, is_one):
    assert attends(build(name, 5, num_features=16, seed=0)) is is_one
