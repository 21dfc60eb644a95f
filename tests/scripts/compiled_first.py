"""Compiled first, tempered afterwards.

packages: torch
outcome: refuses "got OptimizedModule: the compiled graph is that of the untempered model"
"""

import torch
import toy

import tstar

tstar.temper(torch.compile(toy.mlp()), 4.0)
