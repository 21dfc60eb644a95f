"""Twenty steps: a shorter memory of the norm, and its statistics measured anew before folding.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar
import tstar.monitor

data = toy.points(640)
model = tstar.temper(toy.mlp(), 2.0, steps=20)
toy.train(model, torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9), data, epochs=1)
tstar.monitor.recalibrate(model, toy.loader(data))
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
