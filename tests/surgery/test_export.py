"""A folded model leaves through every door with the tempered logits: ONNX, torch.export, TorchScript."""

import pytest
import torch
from torch import nn

import tstar

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


def test_a_folded_export_has_no_trace_of_the_temperature(trained):
    model, x, _ = trained
    program = torch.export.export(tstar.fold(model), (x,))
    operations = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("div" in name or "batch_norm" in name for name in operations)


@pytest.mark.parametrize("how", ["trace", "script"])
def test_torchscript(trained, how):
    model, x, expected = trained
    plain = tstar.fold(model)
    scripted = torch.jit.trace(plain, x) if how == "trace" else torch.jit.script(plain)
    torch.testing.assert_close(scripted(x), expected, rtol=1e-4, atol=1e-5)
