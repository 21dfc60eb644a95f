"""A fine-tuning helper that puts every BatchNorm into eval mode.

packages: torch
outcome: warns "a helper that freezes BatchNorm"
"""

import torch
import toy
from torch import nn

import tstar

model = tstar.temper(toy.mlp(), 4.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.train()
for module in model.modules():
    if isinstance(module, nn.BatchNorm1d):
        module.eval()
for x, y in toy.loader(toy.points()):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
