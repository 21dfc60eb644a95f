"""How fast is a run, and how much do two workers gain?

1. One run of tstar's loop (data in memory as tensors, augmentation of whole batches, channels-last)
   against a plain PyTorch loop with the ordinary per-image DataLoader pipeline (torchvision's
   RandomCrop, RandomHorizontalFlip, RandomRotation, ToTensor, Normalize on PIL images): the same network,
   data, batch size, augmentation and optimizer, interleaved in one process, one thread.
   Throughput is per second of processor time, which on one thread is wall time on an idle machine and
   is not disturbed by other people's processes.
2. A sweep with two workers against one: the same runs into fresh stores, interleaved, the start of the
   processes included.

Both are ratios within one invocation:

    OMP_NUM_THREADS=1 python benchmarks/sweep.py --output results/sweep/benchmark.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from tstar.lab.data import DataSet
from tstar.lab.models import build
from tstar.lab.sweep import parse_study, run_study
from tstar.lab.sweep.provenance import commit, versions
from tstar.lab.training import Config, train

BATCH = 128


def make_data(samples: int = 1024, size: int = 32) -> DataSet:
    """Random images of CIFAR's shape: throughput does not depend on what they show."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.integers(0, 256, (samples, 3, size, size), np.uint8))
    y = torch.arange(samples) % 10
    return DataSet("random", "image", x, y, x[:64], y[:64], tuple(map(str, range(10))))


def tstar_loop(data: DataSet, width: int, epochs: int) -> float:
    """Images a second of tstar's training loop."""
    model = build("resnet10", 10, num_features=width, seed=0)
    started = time.process_time()
    train(model, data, Config(epochs=epochs, val_fraction=0.0), seed=0)
    return epochs * len(data.y_train) / (time.process_time() - started)


def plain_loop(data: DataSet, width: int, epochs: int, workers: int = 0) -> float:
    """Images a second of the loop that most tutorials show."""
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision import transforms

    size = data.x_train.shape[-1]
    pipeline = transforms.Compose(
        [
            transforms.RandomCrop(size, padding=size // 8),
            transforms.RandomHorizontalFlip(),
            transforms.RandomRotation(15),
            transforms.ToTensor(),
            transforms.Normalize((0.5,) * 3, (0.25,) * 3),
        ]
    )
    pictures = [Image.fromarray(x.permute(1, 2, 0).numpy()) for x in data.x_train]

    class Images(Dataset):
        def __len__(self) -> int:
            return len(pictures)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return pipeline(pictures[index]), int(data.y_train[index])

    model = build("resnet10", 10, num_features=width, seed=0)
    loader = DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=workers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    started, seen = time.process_time(), 0
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(y)
    return seen / (time.process_time() - started)


def compare_runs(sizes: list[int], widths: list[int], rounds: int) -> list[dict[str, float]]:
    torch.set_num_threads(1)
    rows = []
    for size, width in itertools.product(sizes, widths):
        data = make_data(size=size)
        tstar_loop(data, width, 1), plain_loop(data, width, 1)  # warm up
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(tstar_loop(data, width, 1))
            theirs.append(plain_loop(data, width, 1))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        rows.append(
            {
                "pixels": size,
                "num_features": width,
                "tstar_images_per_second": round(statistics.median(ours), 1),
                "plain_images_per_second": round(statistics.median(theirs), 1),
                "ratio": round(statistics.median(ratios), 3),
                "ratio_min": round(min(ratios), 3),
                "ratio_max": round(max(ratios), 3),
            }
        )
        print(rows[-1], flush=True)
    return rows


def compare_workers(rounds: int, runs: int, epochs: int) -> dict[str, float]:
    """Runs an hour with two workers against one; even so many runs that neither waits for the last."""
    temperatures = [float(2**n) for n in range(runs // 2)]
    study = parse_study(
        f'csg = false\n[training]\nepochs = {epochs}\n[[grid]]\ndataset = "digits"\n'
        f'model = "resnet10"\nnum_features = 64\ntemperature = {temperatures}\nseeds = 2'
    )
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for workers in (1, 2):
                started = time.perf_counter()
                tally = run_study(
                    study, Path(folder) / f"{number}-{workers}.db", workers=workers, device="cpu"
                )
                assert tally.done == runs
                seconds[workers].append(time.perf_counter() - started)
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    result = {
        "runs": runs,
        "one_worker_seconds": round(statistics.median(seconds[1]), 2),
        "two_workers_seconds": round(statistics.median(seconds[2]), 2),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
    }
    print(result, flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--only", choices=["run", "workers"])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, object] = {
        "command": " ".join(["OMP_NUM_THREADS=1 python", *sys.argv]),
        "versions": versions(),
        "commit": commit(),
        # Well above 0 before the start: others use the machine, and wall times mean little.
        "load_average_at_start": os.getloadavg()[0],
        "cores": os.cpu_count(),
    }
    if options.only != "workers":
        result["one_run_against_a_plain_loop"] = compare_runs(
            options.sizes, options.widths, options.rounds
        )
    if options.only != "run":
        result["two_workers_against_one"] = compare_workers(
            options.rounds, options.runs, options.epochs
        )
    if options.output is not None:
        known = options.output.read_text(encoding="utf-8") if options.output.exists() else "{}"
        old = json.loads(known)
        options.output.write_text(json.dumps(old | result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
