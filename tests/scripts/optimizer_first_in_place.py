r"""The optimizer is built first, and the model changed in place: γ and β would never train.

packages: torch
outcome: warns "does not train the tempered head \(norm.weight, norm.bias\)"
"""

import torch
import toy

import tstar

model = toy.mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tstar.temper(model, 4.0, inplace=True)
toy.train(model, optimizer, toy.points(), epochs=1)
