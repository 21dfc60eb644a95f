"""DistributedDataParallel in two processes: tempered, then wrapped; the ranks stay equal.

packages: torch
outcome: prints "folds"
slow: true
"""

import tempfile

import torch
import torch.distributed as dist
import toy
from torch.nn.parallel import DistributedDataParallel

import tstar


def rank(number, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/file", rank=number, world_size=2)
    x, y = toy.points()
    mine = x[number::2], y[number::2]
    model = tstar.temper(toy.mlp(), 4.0)
    wrapped = DistributedDataParallel(model)
    toy.train(wrapped, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), mine, epochs=8)
    wrapped.eval()(x[:2])  # brings the statistics of the ranks together
    for tensor in model.state_dict().values():
        both = [torch.empty_like(tensor) for _ in range(2)]
        dist.all_gather(both, tensor)
        assert torch.equal(*both)
    torch.testing.assert_close(tstar.fold(wrapped)(x), model(x), rtol=1e-4, atol=1e-5)
    assert toy.accuracy(model, (x, y)) > 0.8
    if not number:
        print("folds")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(rank, (folder,), nprocs=2, start_method="spawn")
