"""Folded, then exported with torch.export and quantized to integers: no division and no norm are left.

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
program = torch.export.export(plain, (x,))
names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
assert not any("div" in name or "batch_norm" in name for name in names)
torch.testing.assert_close(program.module()(x), model(x), rtol=1e-4, atol=1e-5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    small = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=torch.qint8)
assert (small(x).argmax(1) == model(x).argmax(1)).float().mean() > 0.98
