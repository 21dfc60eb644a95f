"""What tempering costs: a training step of ResNet50 tempered against plain, inference folded against plain.

    python benchmarks/overhead.py                       # writes results/quality/overhead.csv and its page
    python benchmarks/overhead.py --device cuda --batch 64

The two variants take turns in blocks of plain, other, other, plain, so that a drift of the machine meets both. On a
CPU the process's own time is counted (one thread), since the clock on the wall also counts other people's work.
Two equal models are compared as well: what they differ by is the noise. Given: the median over blocks of the ratio, and a 95 % interval of that median by resampling blocks.
"""

from __future__ import annotations

import argparse
import copy
import csv
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn

import tstar

RESULTS = Path(__file__).resolve().parents[1] / "results" / "quality"


def trainer(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def predictor(model: nn.Module, x: Tensor) -> Callable[[], None]:
    def step() -> None:
        with torch.inference_mode():
            model(x)

    return step


def seconds(step: Callable[[], None], device: str) -> float:
    clock = time.perf_counter if device == "cuda" else time.process_time
    if device == "cuda":
        torch.cuda.synchronize()
    started = clock()
    step()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - started


def in_turns(
    plain: Callable[[], None], other: Callable[[], None], blocks: int, device: str
) -> list[tuple[float, float]]:
    """(plain, other) seconds of each block of four: plain, other, other, plain.

    A step that follows its own kind finds other caches than one that does not; in a block both have one of each.
    """
    for step in (plain, other, other, plain):  # warm up
        step()
    times = []
    for _ in range(blocks):
        a, b, c, d = (seconds(step, device) for step in (plain, other, other, plain))
        times.append((a + d, b + c))
    return times


def interval(ratios: list[float]) -> tuple[float, float]:
    """A 95 % interval of the median, by 10,000 resamplings of the blocks."""
    generator = np.random.default_rng(0)
    medians = np.median(generator.choice(ratios, (10_000, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--blocks", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter(
        "ignore"
    )  # folding a norm that has seen no batch: only its speed counts here
    x = torch.randn(options.batch, 3, options.size, options.size, device=options.device)
    y = torch.arange(options.batch, device=options.device)
    model = torchvision.models.resnet50().to(options.device)
    tempered, twin = tstar.temper(model, 12.0), copy.deepcopy(model)
    folded = tstar.fold(tempered.eval())
    measured = {
        "training step, a copy of plain / plain": (trainer(model, x, y), trainer(twin, x, y), 1),
        "training step, tempered / plain": (trainer(model, x, y), trainer(tempered, x, y), 1),
        "inference, a copy of plain / plain": (predictor(model, x), predictor(twin, x), 2),
        "inference, folded / plain": (predictor(model, x), predictor(folded, x), 2),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines, rows = [], []
    for name, (plain, other, more) in measured.items():
        for each in (model, tempered, twin, folded):
            each.train("training" in name)
        times = in_turns(plain, other, more * options.blocks, options.device)
        ratios = [b / a for a, b in times]
        low, high = interval(ratios)
        base = statistics.median(a / 2 for a, _ in times)
        lines.append(
            f"| {name} | {statistics.median(ratios):.4f} | {low:.4f} to {high:.4f} | {len(times)} | {base:.3f} s |"
        )
        rows += [(name, f"{a:.5f}", f"{b:.5f}") for a, b in times]
        print(lines[-1], flush=True)
    with (RESULTS / "overhead.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("what", "plain", "other"), *rows])
    versions = (
        f"torch {torch.__version__}, torchvision {torchvision.__version__}, {platform.machine()}"
    )
    text = [
        f"# Overhead on {options.device}", "",
        f"ResNet50, batch {options.batch}, {options.size}×{options.size}, 1000 classes, one thread; {versions}.", "",
        "| what | median ratio | 95 % interval of the median | blocks | plain, a step |", "|---|---|---|---|---|", *lines, "",
        f"Rebuilt by `python benchmarks/overhead.py --device {options.device} --batch {options.batch} --size "
        f"{options.size} --blocks {options.blocks}`; the times of every block (two steps each) are in `overhead.csv`.", "",
    ]  # fmt: skip
    (RESULTS / "overhead.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
