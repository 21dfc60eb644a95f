"""The algebra of folding, which layers take part in it, and what exporters make of both."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import tstar
from tstar import TstarError
from tstar import head as algebra


def test_a_quantized_head_is_refused():
    quantized = torch.ao.quantization.quantize_dynamic(
        nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
    )
    with pytest.raises(TstarError, match="Quantize the folded model"):
        tstar.temper(quantized, 2.0, head="1")


def test_a_quantized_tempered_head_normalizes_the_same_axis():
    """As many tokens as features: the axis cannot be guessed from the shape."""
    model = tstar.temper(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3)), 3.0)
    h = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(0)) + torch.arange(8.0)
    for _ in range(30):
        model.train()(h)
    expected = model.eval()(h)
    got = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)(h)
    assert (got - expected).abs().max() < 0.1 * expected.abs().max()


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.Linear(6, 4), True),
        (nn.Conv1d(6, 4, 1), True),
        (nn.Conv2d(6, 4, 1, padding="same"), True),
        (nn.Conv3d(6, 4, 1), True),
        (nn.Conv2d(6, 4, (1, 3)), False),
        (nn.Conv2d(6, 4, 1, stride=(1, 2)), False),
        (nn.Conv2d(6, 4, 1, groups=2), False),
        (nn.Conv2d(6, 4, 1, padding=(0, 1)), False),
        (nn.ConvTranspose2d(6, 4, 1), False),
        (nn.Embedding(6, 4), False),
    ],
)
def test_linear_layers_and_convolutions_of_size_one(layer, wanted):
    assert algebra.is_output_layer(layer) is wanted
    if wanted:
        algebra.check_layer(layer)
        assert algebra.weight_of(layer) is layer.weight
        assert algebra.class_dim(layer) == (-1 if isinstance(layer, nn.Linear) else 1)
    else:
        with pytest.raises(TstarError, match=f"got {type(layer).__name__}. Pass head="):
            algebra.check_layer(layer)


def weight_normed():
    return nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))


def pruned():
    layer = nn.Linear(6, 4)
    prune.random_unstructured(layer, "weight", 0.5)
    return layer


def old_weight_norm():
    layer = nn.Linear(6, 4)
    layer.weight_g = nn.Parameter(torch.ones(4, 1))
    return layer


def integers():
    layer = nn.Linear(6, 4)
    layer.weight = nn.Parameter(torch.ones(4, 6, dtype=torch.int8), requires_grad=False)
    return layer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (weight_normed, "computed from others"),
        (pruned, "computed from others"),
        (old_weight_norm, "computed from others"),
        (integers, r"floating-point .* got torch\.int8 weights"),
        (lambda: nn.Linear(6, 1), "two classes; got one output"),
    ],
)
def test_weights_that_leave_nothing_to_fold_into(make, message):
    with pytest.raises(TstarError, match=message):
        algebra.check_layer(make())
    algebra.check_layer(nn.Linear(6, 2))


def test_a_layer_is_replaced_wherever_it_is_held():
    old, new = nn.Linear(4, 4), nn.Linear(4, 4)
    model = nn.Sequential(old, nn.Sequential(old), nn.ReLU())
    assert algebra.replaced(model, old, new) is model
    assert model[0] is model[1][0] is new
    assert algebra.replaced(old, old, new) is new
    around = nn.Sequential(new, nn.ReLU())  # holds what it takes the place of
    assert algebra.replaced(model, new, around)[0] is around
    assert around[0] is new


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("norm.running_var", -0.5),
        ("norm.running_mean", float("nan")),
        ("layer.weight", float("nan")),
        ("layer.bias", float("inf")),
    ],
)
def test_numbers_that_are_no_weights_are_not_folded(name, value):
    model = tstar.temper(network(), 3.0)
    model.train()(torch.randn(8, 6))
    tensor = model[2].state_dict()[name]
    tensor.reshape(-1)[0] = value
    with pytest.raises(TstarError, match=r"2 must give .* no finite logits"):
        tstar.fold(model.eval())
    assert isinstance(model[2], algebra.TemperedHead)


pytestmark = pytest.mark.filterwarnings("default")  # the exporters' own warnings are not ours


@pytest.fixture
def trained():
    """A tempered network after a few steps, in eval mode, with its input and logits."""
    torch.manual_seed(0)
    body = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    model = tstar.temper(nn.Sequential(*body, nn.Linear(32, 5)), 6.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x = torch.randn(8, 3, 10, 10)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), torch.arange(8) % 5).backward()
        optimizer.step()
    model.eval()
    return model, x, model(x).detach()


@pytest.mark.slow
def test_onnx(trained, tmp_path):
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    runtime = pytest.importorskip("onnxruntime")
    model, x, expected = trained
    path = tmp_path / "model.onnx"
    torch.onnx.export(tstar.fold(model), (x,), path, dynamo=True, verbose=False)
    session = runtime.InferenceSession(path)
    (logits,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(logits), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("folded", [True, False], ids=["folded", "tempered"])
def test_torch_export(trained, folded):
    model, x, expected = trained
    program = torch.export.export(tstar.fold(model) if folded else model, (x,))
    torch.testing.assert_close(program.module()(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["trace", "script"])
def test_torchscript(trained, how):
    model, x, expected = trained
    plain = tstar.fold(model)
    scripted = torch.jit.trace(plain, x) if how == "trace" else torch.jit.script(plain)
    torch.testing.assert_close(scripted(x), expected, rtol=1e-4, atol=1e-5)


def test_a_tempered_model_is_not_scripted(trained):
    with pytest.raises(TstarError, match="script the folded model"):
        torch.jit.script(trained[0])
