"""Plain PyTorch: temper before training, fold after it, and nothing in between changes."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data, tempered


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    model = tempered()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    plain = tstar.fold(model.eval())  # the architecture of digits.network(), with these logits
    x = held_out.tensors[0]
    assert torch.allclose(plain(x), model(x), atol=1e-4)
    return accuracy(plain, held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
