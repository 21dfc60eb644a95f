"""Lightning Fabric: tempered, then set up.

packages: lightning
outcome: folds
slow: true
"""

import torch
import toy
from lightning.fabric import Fabric
from torch import nn

import tstar

data = toy.points()
fabric = Fabric(accelerator="cpu", devices=1)
model = tstar.temper(toy.mlp(), 4.0)
wrapped, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
for _ in range(5):
    for inputs, targets in toy.loader(data):
        optimizer.zero_grad()
        fabric.backward(nn.functional.cross_entropy(wrapped(inputs), targets))
        optimizer.step()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(wrapped)
