"""accelerate: prepared first, in mixed precision.

packages: accelerate
outcome: refuses "got a model after accelerator.prepare"
slow: true
"""

import toy
from accelerate import Accelerator

import tstar

tstar.temper(Accelerator(cpu=True, mixed_precision="bf16").prepare(toy.mlp()), 4.0)
