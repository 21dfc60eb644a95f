"""FSDP2 in two processes: tempered, then sharded; gathered and folded from the state dict.

packages: torch
outcome: prints "folds"
slow: true
"""

import tempfile

import torch
import torch.distributed as dist
import toy
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import tstar
from tstar.lab.checkpoints import fold_state_dict


def rank(number, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/file", rank=number, world_size=2)
    x, y = toy.points()
    model = tstar.temper(toy.mlp(), 4.0)
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    toy.train(model, optimizer, (x[number::2], y[number::2]), epochs=8)
    state = get_model_state_dict(
        model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    logits = model.eval()(x)
    if not number:
        plain = toy.mlp().eval()
        plain.load_state_dict(fold_state_dict(state))
        torch.testing.assert_close(plain(x), logits.detach(), rtol=1e-4, atol=1e-5)
        assert toy.accuracy(plain, (x, y)) > 0.8
        print("folds")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(rank, (folder,), nprocs=2, start_method="spawn")
