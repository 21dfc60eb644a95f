"""Peak memory of a sweep with one and with two workers on 20,000 images of 96 pixels.

    python -m benchmarks.memory > results/memory/README.md

Memory is the proportional set size (Linux) of the sweep and all its processes, sampled twice a second: pages that several
processes share count once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STUDY = """
csg = false
[training]
steps = 3
batch_size = 16
val_fraction = 0
[[grid]]
dataset = "images"
model = "resnet10"
num_features = 8
temperature = [1, 2]
"""


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text(encoding="utf-8").split()
        except OSError:
            continue
        for child in children:
            found += family(int(child))
    return found


def megabytes(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:  # it has just ended
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def peak(folder: Path, workers: int) -> tuple[float, float]:
    """(the highest total, the highest total while workers were training) in MB."""
    words = ["sweep", "study.toml", "--store", f"{workers}.db", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tstar", *words, "--data-root", ".", "--device", "cpu"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    highest = training = 0.0
    while process.poll() is None:
        members = family(process.pid)
        total = sum(map(megabytes, members))
        highest = max(highest, total)
        if len(members) > workers + 2:  # beside the sweep, a fork server and a tracker
            training = max(training, total)
        time.sleep(0.5)
    assert process.returncode == 0
    return highest, training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=96)
    asked = parser.parse_args()
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        x = random.integers(0, 256, (asked.images, asked.size, asked.size, 3), dtype=np.uint8)
        y = np.arange(asked.images) % 10
        np.savez(folder / "images.npz", x_train=x, y_train=y, x_test=x[:50], y_test=y[:50])
        size = x.nbytes / 2**20
        del x
        results = {workers: peak(folder, workers) for workers in (1, 2)}
    print("# Memory of a sweep\n")
    print(
        f"{asked.images:,} images of {asked.size}×{asked.size} pixels ({size:.0f} MB as bytes), two runs of a small network."
    )
    print(
        "Proportional set size of the sweep and its workers, in MB; rebuilt by `python -m benchmarks.memory`.\n"
    )
    print("| workers | highest, with reading the data | highest while training |\n|--:|--:|--:|")
    for workers, (highest, training) in results.items():
        print(f"| {workers} | {highest:.0f} | {training:.0f} |")
    ratios = [results[2][i] / results[1][i] for i in (0, 1)]
    print(f"| 2 against 1 | {ratios[0]:.2f} × | {ratios[1]:.2f} × |")


if __name__ == "__main__":
    main()
