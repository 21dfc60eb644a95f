"""Fine-tuning from a checkpoint of the plain model, and back to its keys.

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
model.load_state_dict(pretrained.state_dict())
model = tstar.temper(model, 2.0)
toy.train(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), data)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
toy.mlp().load_state_dict(plain.state_dict())
