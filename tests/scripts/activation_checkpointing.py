"""The body is computed twice to save memory; the head stays outside, so that its norm counts each batch once.

packages: torch
outcome: folds
"""

import torch
import toy
from torch import nn
from torch.utils.checkpoint import checkpoint

import tstar


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Sequential(nn.Linear(10, 32), nn.ReLU()), nn.Linear(32, 4)

    def forward(self, x):
        h = checkpoint(self.body, x, use_reentrant=False) if self.training else self.body(x)
        return self.fc(h)


data = toy.points()
model = tstar.temper(Net(), 4.0)
toy.train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), data)
assert int(model.fc.norm.num_batches_tracked) == 40
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
