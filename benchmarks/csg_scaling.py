"""How the cost of csg grows with the number of rows N, of classes K and of dimensions D.

    python benchmarks/csg_scaling.py --out results/csg/scaling.csv --plot results/csg/scaling.png

One of the three is varied at a time around N = 8,000, K = 10, D = 3072 (250 samples per class, so there are
250·K queries). CPU seconds of one thread, the better of two runs, next to the time of the bare matrix
product of queries and data.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import tstar
from csg import fields, product

CENTER = {"N": 8000, "K": 10, "D": 3072}
STEPS = {"N": [2000, 4000, 8000, 16000, 32000], "K": [2, 5, 10, 20, 40], "D": [48, 192, 768, 3072]}


def measure(N: int, K: int, D: int) -> tuple[float, float]:
    data, labels = fields(N, K, 1.4)
    if data.shape[1] > D:  # smaller images, by area averaging
        side = round((D // 3) ** 0.5)
        images = data.reshape(N, 3, side, 32 // side, side, 32 // side).mean(axis=(3, 5))
        data = np.rint(images).astype(np.uint8).reshape(N, -1)
    times = []
    for _ in range(2):
        start = time.process_time()
        result = tstar.csg(data, labels)
        times.append(time.process_time() - start)
    return min(times), product(data, np.concatenate(result.indices))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path, required=True)
    parser.add_argument("--redraw", action="store_true", help="only the plot, from the file")
    args = parser.parse_args()
    if args.redraw:
        with args.out.open(encoding="utf-8") as file:
            stored = [dict(row) for row in csv.DictReader(file)]
        numbers = {"N": int, "K": int, "D": int, "tstar_cpu": float, "product_cpu": float}
        draw([row | {k: to(row[k]) for k, to in numbers.items()} for row in stored], args.plot)
        return
    rows = []
    for name, values in STEPS.items():
        for value in values:
            point = {**CENTER, name: value}
            seconds, bare = measure(**point)
            rows.append({"varied": name, **point, "tstar_cpu": seconds, "product_cpu": bare})
            print(rows[-1])
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, args.plot)


def draw(rows: list[dict[str, object]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axis, name in zip(figure.subplots(1, 3, sharey=True), STEPS, strict=True):
        some = [row for row in rows if row["varied"] == name]
        x = [row[name] for row in some]
        axis.loglog(x, [row["tstar_cpu"] for row in some], "o-", label="tstar.csg, all of it")
        axis.loglog(x, [row["product_cpu"] for row in some], "s--", label="float32 product alone")
        axis.set(xlabel={"N": "rows N", "K": "classes K", "D": "dimensions D"}[name])
        axis.set_title(", ".join(f"{k} = {v}" for k, v in CENTER.items() if k != name), fontsize=9)
        axis.set_xticks(x, [f"{value:,}" for value in x], fontsize=8)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3, which="both")
    figure.axes[0].set_ylabel("CPU seconds, one thread")
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
