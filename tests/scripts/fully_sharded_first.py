"""FSDP2: sharded first, so that γ and β would not be reduced.

packages: torch
outcome: refuses "which would go on with the untempered model"
slow: true
"""

import tempfile

import torch.distributed as dist
import toy
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import tstar

with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/file", rank=0, world_size=1)
    try:
        model = fully_shard(toy.mlp(), mesh=init_device_mesh("cpu", (1,)))
        tstar.temper(model, 4.0, inplace=True)
    finally:
        dist.destroy_process_group()
