"""param_groups is called again for a second optimizer: the head is divided once.

packages: torch
outcome: trains
"""

import torch
import toy

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 1.0)
start = model[2].weight.detach().clone()
tstar.param_groups(model, 4.0, lr=0.1)
groups = tstar.param_groups(model, 4.0, lr=0.1)
assert torch.equal(model[2].weight, start / 4)
toy.train(model, torch.optim.SGD(groups, momentum=0.9), data)
accuracy = toy.accuracy(model, data)
