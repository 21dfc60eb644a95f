"""The optimizer is built first, the advice is read from it and from the loader, and applied to it.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar

data = toy.points()
model = toy.mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
advice = tstar.recommend(model, toy.loader(data), optimizer=optimizer, epochs=25)
model = advice.apply(model, optimizer)
toy.train(model, optimizer, data, epochs=25)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
