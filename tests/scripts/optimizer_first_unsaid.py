"""The optimizer is built first, and nobody is told: it trains the old copy.

packages: torch
outcome: warns "The optimizer does not train the tempered head"
"""

import torch
import toy

import tstar

data = toy.points()
model = toy.mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = tstar.temper(model, 4.0)
toy.train(model, optimizer, data)
toy.accuracy(model, data)
