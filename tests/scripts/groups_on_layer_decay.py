"""param_groups on top of groups with layer-wise rates and no decay for vectors.

packages: torch
outcome: trains
"""

import torch
import toy

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 1.0)
own = [
    {"params": [model[0].weight], "lr": 0.05},
    {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    {"params": [model[2].weight]},
]
groups = tstar.param_groups(model, 4.0, lr=0.1, weight_decay=1e-4, groups=own)
toy.train(model, torch.optim.SGD(groups, momentum=0.9), data)
accuracy = toy.accuracy(model, data)
