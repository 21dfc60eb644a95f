"""torch.compile: temper first, then compile. A schedule changes T in place, without compiling again."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data, tempered


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    inner = tempered()
    model = torch.compile(inner)
    schedule = tstar.Schedule.warmup(8.0, steps=max(1, epochs - 1)).drive(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        schedule.step()
    return accuracy(tstar.fold(inner.eval()), held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
