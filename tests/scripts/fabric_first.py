"""Lightning Fabric: set up first.

packages: lightning
outcome: refuses "got _FabricModule, which would go on with the untempered model"
slow: true
"""

import toy
from lightning.fabric import Fabric

import tstar

tstar.temper(Fabric(accelerator="cpu", devices=1).setup(toy.mlp()), 4.0)
