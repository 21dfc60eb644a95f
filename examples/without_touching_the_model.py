"""For models whose forward pass may not change: T as initialization, rate and decay of the output layer."""

import torch
from torch import nn

import tstar
from digits import accuracy, data, show, train
from tstar.law import law_temperature
from tstar.training import Training


def network() -> nn.Module:
    """T presupposes a batch norm before the output layer; this network has one of its own."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.BatchNorm1d(256), nn.Linear(256, 10),
    )  # fmt: skip


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    model = network()
    how = {"lr": 0.1, "weight_decay": 1e-4}
    groups = model.parameters()
    if advised:
        # no row of the table is for a network with such a norm, so that this takes our law's T
        training = Training("sgd", momentum=0.9, steps=epochs * len(loader), batch_size=32, **how)
        T = law_temperature(256, 10, training)
        print(f"T = {T:.3g}")
        groups = tstar.param_groups(model, T, **how, rescale=True)
    train(model, torch.optim.SGD(groups, momentum=0.9, **how), loader, epochs)
    return accuracy(model, held_out)  # nothing to fold


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
