"""Gradient accumulation: the temperature is in the logits, so the loss is averaged as ever.

The norm's statistics are those of the small batches, as with every batch norm."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data, tempered


def main(samples: int = 1797, epochs: int = 5, parts: int = 4) -> float:
    train_set, held_out = data(samples)
    model = tempered()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for count, (x, y) in enumerate(DataLoader(train_set, batch_size=8, shuffle=True), 1):
            (F.cross_entropy(model(x), y) / parts).backward()
            if count % parts == 0:
                optimizer.step()
                optimizer.zero_grad()
    return accuracy(tstar.fold(model.eval()), held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
