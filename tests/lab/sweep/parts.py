"""Parts of one's own, and a study that names them."""

PARTS = """
import numpy as np
import torch
from torch import nn
from tstar.lab.methods import Recipe

def net(num_classes, in_channels, num_features=6):
    return nn.Sequential(nn.Linear(in_channels, num_features), nn.ReLU(), nn.Linear(num_features, num_classes))

class Tired(nn.Module):
    tired = 0

    def __init__(self, *layers):
        super().__init__()
        self.layers, self.calls = nn.Sequential(*layers), 0

    def forward(self, x):
        self.calls += self.training
        if self.calls > self.tired:
            raise ArithmeticError("tired")
        return self.layers(x)

class Wrong(nn.Sequential):
    def forward(self, x):
        return super().forward(x), x

def arrays(root, size):
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.normal(size=(60, 5)).astype("float32") + y[:, None]
    return x, y, x[:30], y[:30]

def method(model, facts, power=1):
    return Recipe(model, lambda z, y, x: nn.functional.cross_entropy(z / 2**power, y))

def optimizer(parameters, lr):
    return torch.optim.RMSprop(parameters, lr)

def schedule(step, steps):
    return 1 - step / (2 * steps)

def augment(batch, generator):
    return batch + 0.01 * torch.randn(batch.shape, generator=generator)

def loss(logits, targets):
    return nn.functional.multi_margin_loss(logits, targets)

def metric(logits, targets):
    return (logits.argmax(1) == targets).float().mean() * 100
"""


OWN_STUDY = """
csg = false
[training]
epochs = 2
batch_size = 16
dataset = "./parts.py:arrays"
optimizer = "./parts.py:optimizer"
schedule = "./parts.py:schedule"
augment = "./parts.py:augment"
loss = "./parts.py:loss"
metric = "./parts.py:metric"
lr = 0.01
[[grid]]
model = "parts:net"
num_features = [4, 8]
temperature = 2
"""
