"""A segmentation network, which interpolates after its head.

packages: torch, torchvision
outcome: folds
slow: true
"""

import torch
from torch import nn
from torchvision.models.segmentation import fcn_resnet50

import tstar

torch.manual_seed(0)
x = torch.randn(4, 3, 32, 32)
y = (x.mean(1) > 0).long()
model = tstar.temper(fcn_resnet50(weights=None, weights_backbone=None, num_classes=2), 2.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x)["out"], y)
    loss.backward()
    optimizer.step()
    losses.append(float(loss.detach()))
accuracy = losses[0] > losses[-1]
plain = tstar.fold(model.eval())
