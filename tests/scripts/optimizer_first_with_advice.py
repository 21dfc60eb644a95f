"""The optimizer is built first, and the advice is read from it.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar

data = toy.points()
model = toy.mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
advice = tstar.recommend(model, optimizer=optimizer, steps=200)
for group in optimizer.param_groups:
    group["lr"] *= advice.lr_factor
model = tstar.temper(model, advice)
toy.train(model, optimizer, data, epochs=25)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
