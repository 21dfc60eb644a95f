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
advice = tstar.recommend(model, optimizer=optimizer, steps=200, variant="cn")
model = advice.apply(model, optimizer)
toy.train(model, optimizer, data, epochs=25)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
