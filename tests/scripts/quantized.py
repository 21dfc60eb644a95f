"""Folded, then quantized to integers for a CPU: the class that is predicted stays.

packages: torch
outcome: folds
slow: true
"""

import warnings

import torch
import toy
from torch import nn

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 4.0)
toy.train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), data)
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    small = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=torch.qint8)
assert (small(x).argmax(1) == model(x).argmax(1)).float().mean() > 0.98
