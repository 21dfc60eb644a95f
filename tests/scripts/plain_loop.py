"""A plain PyTorch loop.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 4.0)
toy.train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), data)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
