"""The same model, its output layer named.

packages: torch
outcome: folds
"""

import torch
import toy
from torch import nn

import tstar


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(10, 32), nn.Linear(32, 4)

    def forward(self, x):
        f = self.body(x).relu()
        return f, self.fc(f)


data = toy.points()
model = tstar.temper(Embedder(), 4.0, head="fc")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    for inputs, targets in toy.loader(data):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs)[1], targets).backward()
        optimizer.step()
model.eval()
x = data[0]
accuracy = float((model(x)[1].argmax(1) == data[1]).float().mean())
plain = tstar.fold(model)
