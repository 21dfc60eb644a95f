r"""A model that returns its features and its logits.

packages: torch
outcome: refuses "several tensors that could be the logits \(they come from 'body', 'fc'\)"
"""

from torch import nn

import tstar


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(10, 128), nn.Linear(128, 64)

    def forward(self, x):
        f = self.body(x).relu()
        return f, self.fc(f)


tstar.temper(Embedder(), 4.0)
