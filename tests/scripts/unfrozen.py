"""A new head on frozen pretrained layers, then all of it: both phases with advice, one tempered model.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar

data = toy.points()
pretrained = toy.mlp()
toy.train(pretrained, torch.optim.SGD(pretrained.parameters(), lr=0.05), data, epochs=1)
model = toy.mlp()
model[0].load_state_dict(pretrained[0].state_dict())
model[0].requires_grad_(False)
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.05, momentum=0.9)
model = tstar.temper(model, 2.0, optimizer=optimizer)
toy.train(model, optimizer, data)

model.requires_grad_(True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
advice = tstar.recommend(model, toy.loader(data), optimizer=optimizer, epochs=5)
model = advice.apply(model, optimizer)
again = tstar.recommend(model, toy.loader(data), optimizer=optimizer, epochs=5)
assert again.leave
toy.train(model, optimizer, data)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
toy.mlp().load_state_dict(plain.state_dict())
