"""Fourteen findings in a chest X-ray, each with its own sigmoid.

packages: torch
outcome: refuses "got the loss BCEWithLogitsLoss, to which the softmax temperature does not apply"
"""

import toy
from torch import nn

import tstar

tstar.temper(toy.mlp(14), 4.0, loss=nn.BCEWithLogitsLoss())
