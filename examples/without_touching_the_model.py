"""For models whose forward pass may not change: the same training by other groups of the optimizer."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data
from tstar.groups import param_groups


def network() -> nn.Module:
    """T* presupposes a batch norm before the output layer; this network has one of its own."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.BatchNorm1d(256), nn.Linear(256, 10),
    )  # fmt: skip


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    model = network()
    T = tstar.temperature(num_features=256, num_classes=10)
    groups = param_groups(model, T, lr=0.1, weight_decay=1e-4)  # instead of model.parameters()
    optimizer = torch.optim.SGD(groups, momentum=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return accuracy(model, held_out)  # nothing to fold


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
