"""Folded, then exported with torch.export: no division and no norm are left.

packages: torch
outcome: folds
slow: true
"""

import torch
import toy

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
