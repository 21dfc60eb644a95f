"""DistributedDataParallel: temper first, then wrap. Two processes on the CPU; on GPUs the code is the same."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn import SyncBatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import tstar
from digits import accuracy, data, tempered

RANKS = 2


def train(rank: int, file: str, samples: int, epochs: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=RANKS)
    train_set, held_out = data(samples)
    inner = tempered()
    if torch.cuda.is_available():  # the head's norm is an ordinary one: the conversion finds it
        inner = SyncBatchNorm.convert_sync_batchnorm(inner)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler = DistributedSampler(train_set, RANKS, rank)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(train_set, batch_size=16, sampler=sampler):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    score = accuracy(
        model, held_out
    )  # a forward pass through the wrapper brings the buffers together
    for name, tensor in inner.state_dict().items():
        both = [torch.empty_like(tensor) for _ in range(RANKS)]
        dist.all_gather(both, tensor)
        assert torch.equal(*both), f"{name} differs between the ranks"
    if rank == 0:
        torch.save(
            {"state": tstar.fold(model.eval()).state_dict(), "accuracy": score}, f"{file}.pt"
        )
    dist.destroy_process_group()


def main(samples: int = 1797, epochs: int = 5) -> float:
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/rendezvous"
        mp.start_processes(train, (file, samples, epochs), nprocs=RANKS, start_method="spawn")
        return float(torch.load(f"{file}.pt", weights_only=True)["accuracy"])


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
