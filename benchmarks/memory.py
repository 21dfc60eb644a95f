"""Peak memory of a sweep with one and with two workers on 20,000 images of 96 pixels, from one file or from image files.

    python -m benchmarks.memory > results/quality/memory.md

Memory is the proportional set size (Linux) of the sweep and all its processes, sampled twice a second: pages that several
processes share count once.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

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


def write(folder: Path, images: int, size: int, kinds: Iterable[str]) -> float:
    """The same random images as one array (``images``) and as image files (``files``); their size in MB."""
    x = np.random.default_rng(0).integers(0, 256, (images, size, size, 3), dtype=np.uint8)
    y = np.arange(images) % 10
    if "images" in kinds:
        np.savez(folder / "images.npz", x_train=x, y_train=y, x_test=x[:50], y_test=y[:50])
    for row, (pixels, label) in enumerate(zip(x, y, strict=True) if "files" in kinds else ()):
        for part in ("train", "test") if row < 50 else ("train",):
            place = folder / "files" / part / str(label)
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(place / f"{row:05d}.bmp")
    for data in kinds:
        text = STUDY.replace('"images"', f'"{data}"')
        (folder / f"{data}.toml").write_text(text, encoding="utf-8")
    return x.nbytes / 2**20


def peak(folder: Path, data: str, workers: int) -> tuple[float, float]:
    """(the highest total, the highest total while workers were training) in MB; ``files`` are not held in memory."""
    words = ["sweep", f"{data}.toml", "--store", f"{data}{workers}.db", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tstar", *words, "--data-root", ".", "--device", "cpu"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TSTAR_MEMORY_MB": "0"},
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = {
            "images": "one file of arrays, mapped",
            "files": "image files, decoded once and mapped",
        }
        size = write(folder, asked.images, asked.size, kinds)
        results = {
            data: {workers: peak(folder, data, workers) for workers in (1, 2)} for data in kinds
        }
    print("# Memory of a sweep\n")
    print(
        f"{asked.images:,} images of {asked.size}×{asked.size} pixels ({size:.0f} MB as bytes), two runs of a small network "
        "(resnet10, M = 8)."
    )
    print(
        "Highest proportional set size of the sweep and all its processes, in MB, sampled twice a second; rebuilt by "
        "`python -m benchmarks.memory`. A second worker must not hold the data again.\n"
    )
    print("| data | workers | with reading the data | while training |\n|---|--:|--:|--:|")
    for data, said in kinds.items():
        for workers, (highest, training) in results[data].items():
            print(f"| {said} | {workers} | {highest:.0f} | {training:.0f} |")
        ratios = [results[data][2][i] / results[data][1][i] for i in (0, 1)]
        print(f"| | 2 against 1 | {ratios[0]:.2f} × | {ratios[1]:.2f} × |")
    print(
        f"\nPython {platform.python_version()}, torch {torch.__version__}, {platform.system()}, "
        f"{os.cpu_count()} cores."
    )


if __name__ == "__main__":
    main()
