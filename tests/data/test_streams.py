"""Data that are read sample by sample, also by code of the user's."""

import os
import random
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    SubsetRandomSampler,
)

from tests.data.forms import EXPECTED, Pairs, X, Y
from tstar import TstarError, csg
from tstar.data.task import as_task


def test_a_loader_over_a_part_of_its_data_gives_that_part():
    chosen = [*range(0, 120, 2), 1, 3, 5]
    loader = DataLoader(Pairs(), batch_size=8, sampler=SubsetRandomSampler(chosen))
    kept = sorted(chosen)
    assert csg(loader, samples=99).value == pytest.approx(csg(X[kept], Y[kept], samples=99).value)


def states():
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    return python, numpy[1].tobytes(), numpy[2], torch.get_rng_state().numpy().tobytes()


NOISE = {
    "python": random.random,
    "numpy": lambda: np.random.rand(),  # noqa: NPY002
    "torch": lambda: float(torch.rand(())),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("loader", [False, True])
def test_random_transforms_follow_the_seed_and_leave_the_process_alone(kind, loader):
    data = Pairs(noise=NOISE[kind])
    data = DataLoader(data, batch_size=8, shuffle=True) if loader else data
    before = states()
    first = csg(data, samples=20, seed=3).value
    assert csg(data, samples=20, seed=3).value == first
    assert csg(data, samples=20, seed=4).value != first
    as_task(data)
    assert states() == before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_neither_disturb_each_other_nor_a_bystander():
    data = Pairs(noise=lambda: random.random() + np.random.rand() + float(torch.rand(())))  # noqa: NPY002
    expected = csg(data, samples=10, seed=5).value
    np.random.seed(1)  # noqa: NPY002
    alone = np.random.rand(200_000)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    seen, found, stop = [], [], threading.Event()

    def bystander():
        while not stop.is_set() and len(seen) < 200_000:
            seen.append(np.random.rand())  # noqa: NPY002

    def measure():
        for seed in (5, 5, np.int64(5)):
            found.append(csg(data, samples=10, seed=seed).value)

    threads = [threading.Thread(target=measure) for _ in range(4)]
    watcher = threading.Thread(target=bystander)
    for thread in (watcher, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    watcher.join()
    assert found == [expected] * 12
    assert seen == alone[: len(seen)].tolist()


@pytest.mark.parametrize("seed", [2**64, -1, 1.5, "3", None, True])
def test_bad_seeds_leave_the_process_alone(seed):
    before = states()
    with pytest.raises(TstarError, match="seed"):
        csg(X, Y, seed=seed)
    assert states() == before
    assert csg(X, Y, samples=20, seed=np.int64(0)).value == EXPECTED


def test_errors_of_the_users_code_name_the_place():
    class Broken(Pairs):
        def __getitem__(self, i):
            if i == 17:
                raise KeyError("no such row")
            return super().__getitem__(i)

    with pytest.raises(TstarError, match=r"item 17: KeyError: 'no such row'"):
        csg(Broken())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="reads in this process")
def test_a_reader_that_dies_is_an_error():
    class Dying(Pairs):
        def __getitem__(self, i):
            os._exit(1)

    with pytest.raises(TstarError, match="ended before it was done"):
        csg(Dying())
