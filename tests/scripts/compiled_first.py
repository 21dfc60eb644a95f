"""Compiled first, tempered afterwards.

packages: torch
outcome: refuses "got OptimizedModule, which would go on with the untempered model"
"""

import torch
import toy

import tstar

tstar.temper(torch.compile(toy.mlp()), 4.0)
