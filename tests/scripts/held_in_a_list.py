"""Layers in a Python list, so that the model would go past the norm and T.

packages: torch
outcome: refuses "calls the layer 'fc' past the norm and T"
"""

from torch import nn

import tstar


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(10, 16), nn.Linear(16, 4)
        self.layers = [self.body, self.fc]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


tstar.temper(Listed(), 4.0)
