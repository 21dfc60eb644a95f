"""DistributedDataParallel: change the model first, then wrap it. Two processes on the CPU; on GPUs the same."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn import SyncBatchNorm
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import tstar
from digits import accuracy, data, network, show, train

RANKS = 2


def run(advised: bool, rank: int, samples: int, epochs: int) -> float:
    whole, held_out = data(samples)
    sampler = DistributedSampler(whole.dataset, RANKS, rank)
    loader = DataLoader(whole.dataset, batch_size=16, sampler=sampler)
    inner = network()
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.01, momentum=0.9)
    if advised:
        advice = tstar.recommend(inner, loader, optimizer=optimizer, epochs=epochs)
        if rank == 0:
            print(advice)
        inner = advice.apply(inner, optimizer)
    if torch.cuda.is_available():  # the head's norm is an ordinary one: the conversion finds it
        inner = SyncBatchNorm.convert_sync_batchnorm(inner)
    model = DistributedDataParallel(inner)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        train(model, optimizer, loader, 1)
    model.eval()(held_out.tensors[0])  # brings the statistics of the ranks together
    return accuracy(tstar.fold(model), held_out)


def work(rank: int, file: str, samples: int, epochs: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=RANKS)
    found = torch.tensor([run(advised, rank, samples, epochs) for advised in (False, True)])
    both = [torch.empty_like(found) for _ in range(RANKS)]
    dist.all_gather(both, found)
    assert torch.equal(*both), "the ranks differ"
    torch.save(found, f"{file}.pt")
    dist.destroy_process_group()


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/rendezvous"
        mp.start_processes(work, (file, samples, epochs), nprocs=RANKS, start_method="spawn")
        return tuple(torch.load(f"{file}.pt", weights_only=True).tolist())


if __name__ == "__main__":
    show(*main())
