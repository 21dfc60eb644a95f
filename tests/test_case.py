"""What is read of a model, its data and its training before it starts."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tstar import TstarError
from tstar.case import kind_of, looks_trained, norms_of, read_case, usual_training
from tstar.lab.models import build
from tstar.output_layer import find_head, has_preceding_norm
from tstar.surgery import temper
from tstar.training import Training


def network(M=64, K=10):
    layers = [nn.Conv2d(3, M, 3), nn.BatchNorm2d(M), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(M, K))


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
    head = find_head(model)
    assert has_preceding_norm(model, head) is found
    assert has_preceding_norm(model.requires_grad_(False), head) is found
    assert read_case(model.requires_grad_(True), **HOW)[0].own_norm is found


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


def test_a_frozen_backbone_is_known_by_what_is_trained():
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
    grouped = nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4), head)
    assert norms_of(grouped, head) == "layer-norms"
    mixed = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.BatchNorm1d(4), head)
    assert norms_of(mixed, head) == "batch-norms"


def test_a_network_that_is_mostly_frozen_was_trained_before():
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 8, bias=False))
    assert not looks_trained(model)
    model[0].requires_grad_(False)
    assert looks_trained(model)
    model[1] = nn.Linear(10, 10, bias=False)  # half of them
    assert not looks_trained(model)


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
        assert (kind_of(timm.create_model(name, **options)) == "transformer") is is_one


class ChannelAttention(nn.Sequential):
    """Of CBAM, which weighs channels."""


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv = nn.Linear(8, 24)


def test_a_class_name_alone_is_no_sign():
    weighed = ChannelAttention(nn.Conv2d(8, 8, 1), nn.Sigmoid())
    for norm in (nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.Identity()):
        assert kind_of(nn.Sequential(nn.Conv2d(3, 8, 3), norm, weighed)) == "convnet"
    assert kind_of(nn.Sequential(Mixing(), nn.Linear(8, 3))) == "transformer"
    assert kind_of(nn.Sequential(nn.MultiheadAttention(8, 2), nn.Linear(8, 3))) == "transformer"


@pytest.mark.parametrize(
    ("known", "norms", "kind", "lr", "steps"),
    [
        (Training(), "batch-norms", "convnet", 0.1, 200 * 391),
        (Training(batch_size=512), "batch-norms", "convnet", 0.2, 200 * 98),
        (Training("sgd"), "layer-norms", "convnet", 0.03, 200 * 391),
        (Training("sgd"), "no norms", "mlp", 0.01, 200 * 391),
        (Training(), "layer-norms", "transformer", 1e-3, 100 * 391),
        (Training("adamw", batch_size=512), "layer-norms", "transformer", 1e-3, 100 * 98),
        (Training("sgd", scenario="finetune"), "batch-norms", "convnet", 0.01, 50 * 157),
        (Training("adamw", scenario="finetune"), "layer-norms", "transformer", 5e-5, 10 * 157),
    ],
)
def test_the_usual_rate_and_length(known, norms, kind, lr, steps):
    complete = usual_training(known, norms, kind)
    assert (complete.lr, complete.steps) == (pytest.approx(lr), steps)


# -- the whole case --------------------------------------------------------------------------------
HOW = dict(optimizer="sgd", lr=0.1, steps=1000, batch_size=64, samples=5000)


def test_what_is_read_from_the_model_and_what_is_assumed():
    case, (head,) = read_case(network(), **HOW)
    assert (case.num_features, case.num_classes, head.path) == (64, 10, "5")
    assert (case.kind, case.norms) == ("convnet", "batch-norms")
    assert case.assumed == {"weight_decay"}
    assert case.training.weight_decay == 5e-4
    bare, _ = read_case(network())
    assert bare.assumed == {"optimizer", "lr", "weight_decay", "batch_size", "steps"}


@pytest.mark.parametrize("count", range(5))
def test_passing_what_is_assumed_gives_the_same_training(count):
    usual = read_case(network())[0].training
    names = ("optimizer", "lr", "steps", "batch_size", "weight_decay")[:count]
    case, _ = read_case(network(), **{name: getattr(usual, name) for name in names})
    assert case.training == usual


def test_fine_tuning_is_read_from_the_weights():
    fresh, loaded = network(), network()
    nn.init.uniform_(loaded[1].weight)
    assert (looks_trained(fresh), looks_trained(loaded)) == (False, True)
    case, _ = read_case(loaded, **HOW)
    assert (case.training.scenario, "scenario" in case.assumed) == ("finetune", True)
    assert read_case(loaded, **HOW, scenario="scratch")[0].training.scenario == "scratch"
    case, _ = read_case(loaded, samples=960, epochs=5)  # in fine-tuning's batches
    assert (case.training.batch_size, case.training.steps) == (32, 150)
    named = network()
    named.config = type("Config", (), {"_name_or_path": "someone/bert"})()
    assert looks_trained(named)


def test_a_frozen_network_is_a_linear_probe():
    net = network()
    net[:-1].requires_grad_(False)
    case, _ = read_case(net, **HOW)
    assert (case.norms, case.kind, case.training.scenario) == ("frozen", "linear", "scratch")


def loader_of(size, batch_size=10, channels=3):
    images = torch.rand(100, channels, size, size)
    return DataLoader(TensorDataset(images, torch.arange(100) % 10), batch_size=batch_size)


def test_a_loader_knows_batch_size_samples_and_steps():
    case, _ = read_case(network(), loader_of(8), optimizer="sgd", lr=0.1, epochs=3)
    training = case.training
    assert (training.batch_size, training.samples, training.steps) == (10, 100, 30)
    case, _ = read_case(network(), loader_of(8), optimizer="sgd", epochs=3, accumulate=5)
    assert (case.training.batch_size, case.training.steps, case.batch) == (50, 6, 10)


@pytest.mark.parametrize("size", [7, 18, 26, 42, 60, 110])  # of which none is a standard one
def test_a_network_of_one_size_is_run_on_the_first_batch(size):
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (size - 2) ** 2, 10)
    )
    case, (head,) = read_case(net, loader_of(size, channels=1), optimizer="sgd", epochs=1)
    assert (head.path, case.num_features) == ("3", 4 * (size - 2) ** 2)


class Asking(nn.Module):
    """Attention without a norm: with the one that temper inserts, batch norms are in the majority."""

    def __init__(self):
        super().__init__()
        self.query, self.fc = nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(self.query(x).softmax(-1) * x)


@pytest.mark.parametrize("make", [network, Asking])
def test_a_tempered_model_is_the_same_case_with_its_temperature(make):
    plain, _ = read_case(make(), **HOW)
    case, _ = read_case(temper(make(), 7.0), **HOW)
    assert (case.temperature, case.norm, case.own_norm) == (7.0, "batch", False)
    assert (plain.temperature, plain.norm, plain.own_norm) == (None, None, False)
    for name in ("num_features", "num_classes", "training", "norms", "kind", "assumed"):
        assert getattr(case, name) == getattr(plain, name), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"num_classes": 0}, "num_classes must be"),
        ({"lr": -1}, "lr must be positive"),
        ({"bath_size": 3}, "did you mean 'batch_size'"),
        ({"scenario": "finetuning"}, "did you mean 'finetune'"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(TstarError, match=message):
        read_case(network(), **words)


def test_a_first_step_is_no_pretraining_and_where_no_norm_tells_the_scenario_is_named():
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.randn(4, 6)).square().sum().backward()
    optimizer.step()
    assert len(model[1].weight.unique()) > 1
    assert not looks_trained(model)
    assert "scenario" not in read_case(model)[0].assumed
    assert "scenario" in read_case(nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3)))[0].assumed
