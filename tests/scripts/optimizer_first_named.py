"""The optimizer is built first, with groups of its own, and given to temper.

packages: torch
outcome: folds
"""

import torch
import toy

import tstar

data = toy.points()
model = toy.mlp()
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW([{"params": decay}, {"params": rest, "weight_decay": 0.0}], lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
model = tstar.temper(model, 4.0, optimizer=optimizer)
for _ in range(5):
    toy.train(model, optimizer, data, epochs=1)
    scheduler.step()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
