"""A model whose forward ends in a sigmoid.

packages: torch
outcome: refuses "got a sigmoid after '2'"
"""

import toy
from torch import nn

import tstar

tstar.temper(nn.Sequential(*toy.mlp(), nn.Sigmoid()), 4.0)
