"""Autocast, GradScaler, clipping, accumulated gradients, soft targets from mixup, label smoothing.

packages: torch
outcome: folds
"""

import torch
import toy
from torch import nn

import tstar

data = toy.points()
model = tstar.temper(toy.mlp(), 4.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
scaler = torch.amp.GradScaler("cpu")
for _ in range(6):
    for i, (inputs, targets) in enumerate(toy.loader(data)):
        soft = nn.functional.one_hot(targets, 4).float()
        mixed, soft = 0.9 * inputs + 0.1 * inputs.flip(0), 0.9 * soft + 0.1 * soft.flip(0)
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(mixed), soft, label_smoothing=0.05) / 2
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
