"""How fast is a training, and how much do two workers gain?

1. The training loop against a bare PyTorch loop over tensors in memory: the same network, data, batches,
   loss and optimizer, without augmentation and validation on both sides, interleaved in one process on one
   thread. Once as most people write it, once with channels-last and a fused optimizer. Times are of the
   processor, which others who use the machine disturb least.
2. What each of many tiny runs costs beside its training, in milliseconds of the processor: in the worker,
   and in the process that owns the store. And the time of a sweep with two workers against one, the start
   of the workers included, by the clock: it is worth little on a machine that others use.

    OMP_NUM_THREADS=1 python benchmarks/sweep.py --output results/sweep/benchmark.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from tstar.lab.data import DataSet
from tstar.lab.models import build
from tstar.lab.sweep import Study, parse_study, run_study
from tstar.lab.sweep.execute import Job, execute
from tstar.lab.sweep.provenance import commit, versions
from tstar.lab.training import Config, running, train

BATCH = 128


def make_data(samples: int = 2048, size: int = 32) -> DataSet:
    """Random images of CIFAR's shape: throughput does not depend on what they show."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.integers(0, 256, (samples, 3, size, size), np.uint8))
    y = torch.arange(samples) % 10
    return DataSet("random", "image", x, y, x[:64], y[:64], tuple(map(str, range(10))))


def train_tstar(data: DataSet, width: int) -> None:
    model = build("resnet10", 10, num_features=width, seed=0)
    train(model, data, Config(epochs=1, batch_size=BATCH, val_fraction=0.0, augment=False), seed=0)


def train_bare(data: DataSet, width: int, tuned: bool) -> None:
    """The loop of most tutorials, its data in memory as floats."""
    model = build("resnet10", 10, num_features=width, seed=0).train()
    x = (data.x_train.float() - 127) / 64
    if tuned:
        model, x = (each.to(memory_format=torch.channels_last) for each in (model, x))
    optimizer = torch.optim.SGD(
        model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, fused=tuned or None
    )
    for rows in torch.randperm(len(x)).split(BATCH):
        loss = F.cross_entropy(model(x[rows]), data.y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def seconds_of(task: Callable[[], None]) -> float:
    started = time.process_time()
    task()
    return time.process_time() - started


def compare_loops(size: int, widths: list[int], rounds: int) -> list[dict[str, float]]:
    """The time of tstar's loop over that of each bare one: median, least and most of the rounds."""
    torch.set_num_threads(1)
    data, rows = make_data(size=size), []
    for width in widths:
        train_tstar(data, width), train_bare(data, width, True)  # warm up
        ratios: dict[str, list[float]] = {"bare": [], "tuned": []}
        for _ in range(rounds):
            ours = seconds_of(lambda w=width: train_tstar(data, w))
            for name in ratios:
                theirs = seconds_of(lambda w=width, t=name == "tuned": train_bare(data, w, t))
                ratios[name].append(ours / theirs)
        row: dict[str, float] = {"pixels": size, "num_features": width}
        for name, values in ratios.items():
            row[f"time_over_{name}"] = round(statistics.median(values), 3)
            row |= {f"{name}_min": round(min(values), 3), f"{name}_max": round(max(values), 3)}
        rows.append(row)
        print(row, flush=True)
    return rows


def compare_workers(rounds: int, runs: int) -> dict[str, float]:
    """Tiny runs: what is around the training decides."""
    study = parse_study(
        'csg = false\n[training]\nepochs = 1\n[[grid]]\ndataset = "digits"\nmodel = "mlp"\n'
        f"num_features = 8\ntemperature = [1, 2, 4]\nseeds = {runs // 3}"
    )
    seconds: dict[int, list[float]] = {1: [], 2: []}
    owner: list[float] = []  # of the processor, in the process that owns the store
    with tempfile.TemporaryDirectory() as folder:
        # The process from which workers are forked is there from the first sweep on.
        run_study(study, Path(folder) / "first.db", workers=2, device="cpu", max_runs=4)
        for number in range(rounds):
            for workers, times in seconds.items():
                path = Path(folder) / f"{number}-{workers}.db"
                started, spent = time.perf_counter(), time.process_time()
                tally = run_study(study, path, workers=workers, device="cpu")
                assert tally.done == len(study)
                times.append(time.perf_counter() - started)
                owner.append(1000 * (time.process_time() - spent) / len(study))
    worker, training = cost_of_a_run(study)
    beside = worker - training + statistics.median(owner)
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    result = {
        "runs": len(study),
        "one_worker_seconds": round(statistics.median(seconds[1]), 2),
        "two_workers_seconds": round(statistics.median(seconds[2]), 2),
        "times_as_fast": round(statistics.median(ratios), 3),
        "least": round(min(ratios), 3),
        "most": round(max(ratios), 3),
        "milliseconds_of_a_training": round(training, 2),
        "milliseconds_beside_it_in_the_worker": round(worker - training, 2),
        "milliseconds_beside_it_in_the_owner": round(statistics.median(owner), 2),
        "milliseconds_beside_each_training": round(beside, 2),
    }
    print(result, flush=True)
    return result


def cost_of_a_run(study: Study) -> tuple[float, float]:
    """Milliseconds of the processor for a run in its worker, and for the training in it."""
    spent: list[float] = []

    def timed(*args: object, **options: object) -> object:
        started = time.process_time()
        result = train(*args, **options)
        spent.append(time.process_time() - started)
        return result

    running.train, jobs = timed, [Job(spec) for spec in study.specs]
    execute(jobs[0])  # what is loaded once
    spent.clear()
    started = time.process_time()
    assert all(execute(job).status == "done" for job in jobs)
    whole = time.process_time() - started
    running.train = train
    return 1000 * whole / len(jobs), 1000 * statistics.mean(spent)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", choices=["loops", "workers"])
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
        result["training_loop"] = compare_loops(options.size, options.widths, options.rounds)
    if options.only != "loops":
        result["two_workers_against_one"] = compare_workers(options.rounds, options.runs)
    if options.output is not None:
        known = options.output.read_text(encoding="utf-8") if options.output.exists() else "{}"
        old = json.loads(known)
        options.output.write_text(json.dumps(old | result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
