"""Deployment: fold, export with torch's exporter, run in onnxruntime. Nothing of tstar is in the file."""

import tempfile

import onnxruntime
import torch

import tstar
from digits import data, network, show, train


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if advised:
        advice = tstar.recommend(model, loader, optimizer=optimizer, epochs=epochs)
        print(advice)
        model = advice.apply(model, optimizer)
    train(model, optimizer, loader, epochs)
    plain = tstar.fold(model.eval())
    x, y = held_out.tensors
    with tempfile.TemporaryDirectory() as folder:
        torch.onnx.export(plain, (x,), f"{folder}/digits.onnx", dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession(f"{folder}/digits.onnx")
        (logits,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    logits = torch.from_numpy(logits)
    assert torch.allclose(logits, model(x), atol=1e-4)
    return (logits.argmax(-1) == y).float().mean().item()


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
