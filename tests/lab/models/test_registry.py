"""The networks by name: widths, shapes, initialization, and that nothing global is touched."""

import math

import pytest
import torch
from torch import nn

from tstar import TstarError
from tstar.lab.data import DataSet
from tstar.lab.models import build, fitting_model, names, paper_init
from tstar.output_layer import find_head

FLAT = ["mlp", "mlp-no-norm"]
CONVOLUTIONAL = [name for name in names() if name not in FLAT]
NORM_FREE = ["cnn4", "cnn4-1d", "mlp-no-norm"]


PATCHES = ["vit4", "convnext4", "mixer4"]


def example(name, size=16, batch=2):
    """A batch for the network ``name``, and its in_channels."""
    generator = torch.Generator().manual_seed(1)
    shape = (20,) if name in FLAT else (9, size) if name.endswith("1d") else (3, size, size)
    return torch.randn(batch, *shape, generator=generator), shape[0]


@pytest.mark.parametrize("features", [1, 7, 64])
@pytest.mark.parametrize("name", names())
def test_the_classifier_gets_exactly_m_features(name, features):
    x, channels = example(name)
    model = build(name, 5, num_features=features, in_channels=channels, seed=0).eval()
    seen: list[torch.Size] = []
    model.get_submodule("classifier").register_forward_pre_hook(
        lambda _, inputs: seen.append(inputs[0].shape)
    )
    assert model(x).shape == (2, 5)
    assert seen == [(2, features)]


@pytest.mark.parametrize("size", [8, 32, 97])
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_images_and_signals_of_every_size(name, size):
    x, channels = example(name, size)
    out = build(name, 3, num_features=16, in_channels=channels, seed=0)(x)
    assert out.shape == (2, 3)
    assert torch.isfinite(out).all()


@pytest.mark.parametrize(("name", "layers"), [("resnet10", 10), ("vgg9", 9), ("pyramidnet10", 10)])
def test_the_number_in_the_name_counts_the_layers(name, layers):
    for suffix in ("", "-1d"):
        parameters = build(name + suffix, 10, num_features=8, seed=0).parameters()
        shapes = [p.shape for p in parameters if p.dim() > 1]
        assert sum(len(shape) == 2 or shape[-1] == 3 for shape in shapes) == layers


@pytest.mark.parametrize("name", names())
def test_initialization(name):
    model = build(name, 50, num_features=256, in_channels=20 if name in FLAT else 3, seed=3)
    classifier = model.get_submodule("classifier")
    assert isinstance(classifier, nn.Linear)
    bound = 1 / math.sqrt(256)
    assert all(values.abs().max() <= bound for values in classifier.parameters())
    # U(±b) has standard deviation b/sqrt(3); 12,800 draws give it to about 0.5 %.
    assert classifier.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    for module in model.get_submodule("trunk").modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)):
            assert (module.bias is None) == (name not in NORM_FREE)
            fan_in = module.weight[0].numel()
            n = module.weight.numel()
            he = math.sqrt(2 / fan_in)
            assert module.weight.std().item() == pytest.approx(he, rel=5 / math.sqrt(2 * n))


@pytest.mark.parametrize("name", names())
def test_the_seed_alone_decides_and_the_global_generator_is_left_alone(name):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = build(name, 4, num_features=8, seed=11).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    second = build(name, 4, num_features=8, seed=11).state_dict()
    other = build(name, 4, num_features=8, seed=12).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_every_parameter_gets_a_gradient(name):
    x, channels = example(name, batch=8)
    model = build(name, 3, num_features=24, in_channels=channels, seed=0)
    model(x).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("resnet11", {}, "did you mean 'resnet10'"),
        ("nothing-like-it", {}, "torchvision/NAME"),
        ("mlp", {"num_classes": 0}, "num_classes must be a whole number of at least 1"),
        ("mlp", {"num_features": -1}, "num_features"),
        ("mlp", {"pretrained": True}, "no weights are published"),
        ("torchvision/resnet18", {"depth": 2}, "trunk_features and depth"),
    ],
)
def test_bad_names_and_numbers(name, options, match):
    with pytest.raises(TstarError, match=match):
        build(name, **{"num_classes": 10} | options)


@pytest.mark.parametrize("name", names())
def test_a_last_layer_widens_a_narrow_network(name):
    x, channels = example(name)
    wide = build(name, 5, num_features=96, trunk_features=8, in_channels=channels, seed=0)
    assert wide.get_submodule("classifier").in_features == 96
    assert wide(x).shape == (2, 5)
    whole = build(name, 5, num_features=96, in_channels=channels, seed=0)
    assert sum(p.numel() for p in wide.parameters()) < sum(p.numel() for p in whole.parameters())
    # A network without batch norm stays without one.
    for model in (wide, whole):
        normed = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
        assert normed == (name not in [*PATCHES, *NORM_FREE])
        any_norm = any("Norm" in type(module).__name__ for module in model.modules())
        assert any_norm == (name not in NORM_FREE)


@pytest.mark.parametrize("name", names())
def test_depth_adds_layers(name):
    x, channels = example(name)
    layers = []
    for depth in (1, 2, 3):
        model = build(name, 5, num_features=16, depth=depth, in_channels=channels, seed=0)
        assert model(x).shape == (2, 5)
        layers.append(sum(p.dim() > 1 for p in model.parameters()))
    assert layers[2] > layers[1] > layers[0]
    assert layers[2] - layers[1] == layers[1] - layers[0]


def test_a_network_of_your_own_gets_what_it_takes_and_refuses_what_it_does_not(tmp_path):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "def deep(num_classes, depth=1):\n    return nn.Sequential(*[nn.Linear(8, 8)] * depth, nn.Linear(8, num_classes))\n"
        "def flat(num_classes):\n    return nn.Linear(8, num_classes)\n",
        encoding="utf-8",
    )
    assert len(build(f"{tmp_path / 'nets.py'}:deep", 5, depth=3)) == 4
    for chosen in ("depth", "trunk_features", "num_features"):
        with pytest.raises(TstarError, match=f"takes no {chosen}"):
            build(f"{tmp_path / 'nets.py'}:flat", 5, **{chosen: 3})


def data(*shape, domain):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(6, *shape, generator=generator), torch.arange(6) % 3
    if domain == "image":
        x = (50 * x + 128).to(torch.uint8)
    return DataSet("mine", domain, x, y, x, y, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("name", "shape", "domain"),
    [("resnet10", (1, 8, 8), "image"), ("mlp", (1, 8, 8), "image"), ("mlp", (5,), "vector")],
)
def test_inputs_and_outputs_are_the_data_sets(name, shape, domain):
    given = data(*shape, domain=domain)
    assert fitting_model(name, given, 4, seed=0)(given.x_train.float()).shape == (6, 3)


@pytest.mark.parametrize("name", ["mlp", "timm/vit_tiny_patch16_224", "torchvision/squeezenet1_1"])
def test_the_paper_s_initialization_of_the_output_layer(name):
    """U(±1/√M) for weight and bias, whatever the network's own is; the seed decides."""
    given = data(3, 224, 224, domain="image")
    model, again, other = (fitting_model(name, given, None, seed=0) for _ in range(3))
    for one, seed in ((model, 1), (again, 1), (other, 2)):
        paper_init(one, given.x_train[:2].float(), seed)
    layers = [find_head(one, given.x_train[:2].float()) for one in (model, again, other)]
    bound = layers[0].num_features ** -0.5
    assert all(p.abs().max() <= bound for p in layers[0].layer.parameters())
    assert layers[0].layer.weight.abs().max() > 0.9 * bound
    assert torch.equal(layers[0].layer.weight, layers[1].layer.weight)
    assert not torch.equal(layers[0].layer.weight, layers[2].layer.weight)
