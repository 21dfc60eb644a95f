"""Deployment: fold, export with torch's exporter, run in onnxruntime. Nothing of tstar is in the file."""

import tempfile

import onnxruntime
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import tstar
from digits import data, tempered


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    model = tempered()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    plain = tstar.fold(model.eval())
    x, y = held_out.tensors
    with tempfile.TemporaryDirectory() as folder:
        torch.onnx.export(plain, (x,), f"{folder}/digits.onnx", dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession(f"{folder}/digits.onnx")
        (logits,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    logits = torch.from_numpy(logits)
    assert torch.allclose(logits, model(x), atol=1e-4)
    return (logits.argmax(-1) == y).float().mean().item()


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
