"""An autoencoder with a classifier: the reconstruction comes first.

packages: torch
outcome: refuses "they come from 'decoder', 'classifier'"
"""

from torch import nn

import tstar


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.classifier = (
            nn.Linear(10, 8),
            nn.Linear(8, 10),
            nn.Linear(8, 4),
        )

    def forward(self, x):
        h = self.encoder(x).relu()
        return self.decoder(h), self.classifier(h)


tstar.temper(Both(), 4.0)
