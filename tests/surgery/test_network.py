"""What kind of network it is, told from its modules."""

import pytest
import torch
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


@pytest.mark.parametrize(
    ("name", "is_one"), [("vit4", True), ("resnet10", False), ("convnext4", False)]
)
def test_a_transformer_is_told_by_its_attention(name, is_one):
    assert attends(build(name, 5, num_features=16, seed=0)) is is_one


@pytest.mark.parametrize(
    ("name", "options", "is_one"),
    [
        ("vit_tiny_patch16_224", {}, True),
        ("deit_tiny_distilled_patch16_224", {}, True),
        ("swin_tiny_patch4_window7_224", {}, True),
        ("xcit_nano_12_p16_224", {}, True),  # some batch norms
        ("convnext_atto", {}, False),
        ("mixer_s32_224", {}, False),
        ("resnet10t", {}, False),
        ("resnet18", {"block_args": {"attn_layer": "cbam"}}, False),
        ("resnet50_clip", {}, False),  # pools by attention
    ],
)
def test_the_transformers_of_timm(name, options, is_one):
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        assert attends(timm.create_model(name, **options)) is is_one


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("vit_b_16", True), ("swin_t", True), ("resnet18", False), ("convnext_tiny", False)],
)
def test_the_transformers_of_torchvision(name, is_one):
    with torch.device("meta"):
        assert attends(torchvision.models.get_model(name, weights=None)) is is_one


@pytest.mark.parametrize("kind", ["Bert", "DistilBert", "GPT2", "Llama", "T5", "ViT", "Swin"])
def test_those_of_transformers(kind):
    hf = pytest.importorskip("transformers")
    images = "ForImageClassification" if kind in ("ViT", "Swin") else "ForSequenceClassification"
    with torch.device("meta"):
        assert attends(getattr(hf, kind + images)(getattr(hf, f"{kind}Config")()))


class ChannelAttention(nn.Sequential):
    """Of CBAM, which weighs channels."""


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv = nn.Linear(8, 24)


def test_a_class_name_alone_is_no_sign():
    weighed = ChannelAttention(nn.Conv2d(8, 8, 1), nn.Sigmoid())
    for norm in (nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.Identity()):
        assert not attends(nn.Sequential(nn.Conv2d(3, 8, 3), norm, weighed))
    assert attends(nn.Sequential(Mixing(), nn.Linear(8, 3)))
    assert attends(nn.Sequential(nn.MultiheadAttention(8, 2), nn.Linear(8, 3)))
