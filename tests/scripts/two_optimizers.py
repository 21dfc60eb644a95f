"""Matrices to one optimizer and vectors to another, as with Muon.

packages: torch
outcome: folds
"""

import torch
import toy
from torch import nn

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 4.0)
matrices = torch.optim.SGD([p for p in model.parameters() if p.ndim > 1], lr=0.1, momentum=0.9)
vectors = torch.optim.Adam([p for p in model.parameters() if p.ndim < 2], lr=1e-2)
for _ in range(5):
    for inputs, targets in toy.loader(data):
        model.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        matrices.step()
        vectors.step()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
