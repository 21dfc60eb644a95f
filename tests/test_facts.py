"""What is read of a training before it starts; and the inputs that models are tried on."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TstarError
from tstar.facts import kind_of, looks_trained, norms_of, preceding_norm, usual
from tstar.head import TemperedHead
from tstar.lab.models import build
from tstar.output_layer import find_head, standard_inputs
from tstar.training import Training


def test_a_model_that_takes_no_standard_input_asks_for_one():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x, mask, key):
            if mask.any() and key == 3:
                return self.fc(x)
            raise ValueError

    with pytest.raises(TstarError, match="pass example_input"):
        tstar.find_head(Odd())
    assert tstar.find_head(Odd(), (torch.randn(2, 6), torch.ones(1), 3)).path == "fc"
    assert isinstance(tstar.temper(Odd(), 2.0, head="fc").fc, TemperedHead)


def shapes(model):
    """The shape of each input, or of each of its parts by name."""
    return [
        {name: tuple(part.shape) for name, part in one.items()}
        if isinstance(one, dict)
        else tuple(one.shape)
        for one in standard_inputs(model)
    ]


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.Linear(6, 4), [(2, 6), (2, 8, 6)]),
        (nn.Conv1d(3, 4, 5), [(2, 3, 128), (2, 3, 1024), (2, 3, 16000)]),
        (nn.Conv3d(3, 4, 1), [(2, 3, 16, 112, 112)]),
        (nn.GRU(5, 4), [(2, 16, 5)]),
        (nn.Embedding(50, 4), [(2, 8)]),
        (nn.Conv2d(1, 4, 3), [(2, 1, s, s) for s in (32, 64, 224, 96, 128, 299, 256, 384, 16)]),
        (nn.BatchNorm1d(4), []),  # nothing is known of what it takes
        (nn.ReLU(), []),
    ],
)
def test_inputs_of_a_model_s_first_layer(layer, wanted):
    assert shapes(layer) == wanted
    model = nn.Sequential(nn.Dropout(), layer, nn.Linear(9, 9))
    assert shapes(model) == (wanted or [(2, 9), (2, 8, 9)])


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ([], True),
        ([nn.Dropout(0.5)], True),
        ([nn.Flatten(), nn.Identity()], True),
        ([nn.ReLU()], False),
        ([nn.ReLU(inplace=True)], False),
        ([nn.LayerNorm(8)], False),
    ],
)
def test_what_may_stand_between(between, found):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), *between, nn.Linear(8, 3))
    got = preceding_norm(model, find_head(model))
    assert got == (("1", model[1]) if found else None)


@pytest.mark.parametrize(
    ("name", "norms", "kind"),
    [
        ("vgg9", "batch-norms", "convnet"),
        ("resnet10", "batch-norms", "convnet"),
        ("vit4", "layer-norms", "transformer"),
        ("convnext4", "layer-norms", "convnet"),
        ("cnn4", "no norms", "convnet"),
    ],
)
def test_our_networks(name, norms, kind):
    model = build(name, 5, num_features=16, seed=0)
    assert norms_of(model, model.get_submodule("classifier")) == norms
    assert kind_of(model) == kind


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
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    assert norms_of(model, layer, optimizer) == "frozen"
    optimizer.add_param_group({"params": [next(model.parameters())]})
    assert norms_of(model, layer, optimizer) == "batch-norms"
    next(model.parameters()).requires_grad_(False)
    assert norms_of(model, layer, optimizer) == "frozen"


def test_group_norm_and_batch_norm():
    head = nn.Linear(4, 2)
    assert norms_of(nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4), head), head) == "layer-norms"  # fmt: skip
    mixed = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.BatchNorm1d(4), head)
    assert norms_of(mixed, head) == "batch-norms"


def test_a_network_that_is_mostly_frozen_was_trained_before():
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 8, bias=False))
    assert not looks_trained(model)
    model[0].requires_grad_(False)
    assert looks_trained(model)
    model[1] = nn.Linear(10, 10, bias=False)  # half of them
    assert not looks_trained(model)


def is_transformer(net):
    return kind_of(net) == "transformer"


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
        assert is_transformer(timm.create_model(name, **options)) is is_one


class ChannelAttention(nn.Sequential):
    """Of CBAM, which weighs channels."""


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv = nn.Linear(8, 24)


def test_a_class_name_alone_is_no_sign():
    weighed = ChannelAttention(nn.Conv2d(8, 8, 1), nn.Sigmoid())
    for norm in (nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.Identity()):
        assert not is_transformer(nn.Sequential(nn.Conv2d(3, 8, 3), norm, weighed))
    assert is_transformer(nn.Sequential(Mixing(), nn.Linear(8, 3)))
    assert is_transformer(nn.Sequential(nn.MultiheadAttention(8, 2), nn.Linear(8, 3)))


@pytest.mark.parametrize(
    ("told", "norms", "kind", "lr", "steps"),
    [
        (Training(), "batch-norms", "convnet", 0.1, 200 * 391),
        (Training(batch_size=256), "batch-norms", "convnet", 0.2, 200 * 196),
        (Training("sgd"), "layer-norms", "convnet", 0.03, 200 * 391),
        (Training("sgd"), "no norms", "mlp", 0.01, 200 * 391),
        (Training(), "layer-norms", "transformer", 1e-3, 100 * 391),
        (Training("adamw", batch_size=512), "layer-norms", "transformer", 2e-3, 100 * 98),
        (Training("sgd", scenario="finetune"), "batch-norms", "convnet", 0.01, 50 * 157),
        (Training("adamw", scenario="finetune"), "layer-norms", "transformer", 5e-5, 10 * 157),
    ],
)
def test_the_usual_rate_and_length(told, norms, kind, lr, steps):
    found = usual(told, norms, kind)[0]
    assert (found.lr, found.steps) == (pytest.approx(lr), steps)
