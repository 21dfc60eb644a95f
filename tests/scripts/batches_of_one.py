"""Micro-batches of one sample with accumulated gradients: the norm learns nothing.

packages: torch
outcome: warns "the norm before it has seen no batch"
"""

import torch
import toy
from torch import nn

import tstar

model = tstar.temper(toy.mlp(), 4.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1):
    model.train()
    for i, (x, y) in enumerate(zip(*toy.points(64), strict=True)):
        (nn.functional.cross_entropy(model(x[None]), y[None]) / 8).backward()
        if i % 8 == 7:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()  # validation
