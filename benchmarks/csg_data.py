"""csg of real data sets in .npz files, next to the paper's values for the full sets.

    python benchmarks/csg_data.py FOLDER --out results/csg/real_data.csv

Any file that is absent is left out. The paper's values: its tables of CSG (tables of the fitted and of
the validation data sets).
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import tstar

# file stem: (the paper's value for the full set, why ours differs)
FILES = {
    "cifar10_32": (None, "5,000 of 50,000 images; the paper gives no value"),
    "cifar100_32": (25.50, "5,000 of 50,000 images: 50 samples per class, sparser neighborhoods"),
    "gtsrb_32": (
        1.39,
        "3,999 of 39,209 images: the near-duplicate frames of a track are thinned out",
    ),
    "flowers102_32": (7.47, "3,505 of 8,189 images, at 32×32"),
    "caltech101_32": (5.59, "3,498 of 8,677 images, background class left out, at 32×32"),
    "tinyimagenet_32": (
        88.72,
        "4,000 of 100,000 images: 20 samples per class, at 32×32 from 64×64",
    ),
    "uci_har": (None, "sensor windows, not in the paper"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plots", type=Path, help="folder for the figures")
    args = parser.parse_args()
    rows = []
    for stem, (paper, reason) in FILES.items():
        path = args.folder / f"{stem}.npz"
        if not path.exists():
            continue
        result = tstar.csg(path)
        if args.plots:
            result.plot(args.plots / f"{stem}.png")
        rows.append(
            {
                "data": stem,
                "classes": result.num_classes,
                "rows": result.num_samples,
                "samples_per_class": f"{min(result.samples)}-{max(result.samples)}",
                "csg": f"{result.value:.4f}",
                "low": f"{result.interval[0]:.4f}",
                "high": f"{result.interval[1]:.4f}",
                "regime": result.regime,
                "paper": "" if paper is None else paper,
                "ln_ratio": "" if paper is None else f"{math.log(result.value / paper):.3f}",
                "why_it_differs": reason,
                "tstar": tstar.__version__,
            }
        )
        print(rows[-1])
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
