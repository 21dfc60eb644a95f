"""What the short way of small maps gains: a training step of VGG9 with it and without.

Both sides are the same network in one process, one thread, interleaved; times are of the processor:

    OMP_NUM_THREADS=1 python benchmarks/small_maps.py --output results/sweep/small_maps.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional as F

from tstar.models import build, small_maps
from tstar.sweep.provenance import commit, versions
from tstar.training.layout import channels_last

BATCH, STEPS = 64, 5


def stepper(pixels: int, width: int) -> Callable[[], None]:
    """A function that does one training step."""
    model = build("vgg9", 10, num_features=width, seed=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    x, y = torch.randn(BATCH, 3, pixels, pixels), torch.arange(BATCH) % 10

    def step() -> None:
        with channels_last(model, images=True):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return step


def milliseconds(step: Callable[[], None], largest: int) -> float:
    """A step's processor time where maps of up to ``largest`` pixels a side take the short way."""
    usual, small_maps.LARGEST = small_maps.LARGEST, largest
    try:
        step()
        started = time.process_time()
        for _ in range(STEPS):
            step()
        return 1e3 * (time.process_time() - started) / STEPS
    finally:
        small_maps.LARGEST = usual


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 64, 128, 256, 512])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for pixels, width in itertools.product(options.sizes, options.widths):
        step = stepper(pixels, width)
        times = [(milliseconds(step, 0), milliseconds(step, 2)) for _ in range(options.rounds)]
        ratios = [before / after for before, after in times]
        rows.append(
            {
                "pixels": pixels,
                "num_features": width,
                "usual_ms": round(statistics.median(t[0] for t in times), 1),
                "short_ms": round(statistics.median(t[1] for t in times), 1),
                "ratio": round(statistics.median(ratios), 2),
                "ratio_min": round(min(ratios), 2),
                "ratio_max": round(max(ratios), 2),
            }
        )
        print(rows[-1], flush=True)
    if options.output is not None:
        result = {"versions": versions(), "commit": commit(), "batch_size": BATCH, "rows": rows}
        options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
