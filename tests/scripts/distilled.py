"""A tempered teacher, frozen and in eval mode, and a tempered student.

packages: torch
outcome: folds
"""

import torch
import toy
from torch import nn

import tstar

data = toy.points()
teacher = tstar.temper(toy.mlp(), 4.0)
toy.train(teacher, torch.optim.SGD(teacher.parameters(), lr=0.1, momentum=0.9), data)
teacher.eval().requires_grad_(False)
model = tstar.temper(toy.mlp(), 4.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    for inputs, _labels in toy.loader(data):
        optimizer.zero_grad()
        target = (teacher(inputs) / 2).softmax(1)
        nn.functional.kl_div(
            (model(inputs) / 2).log_softmax(1), target, reduction="batchmean"
        ).backward()
        optimizer.step()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
