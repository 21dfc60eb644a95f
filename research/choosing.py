"""Which ten classes of CIFAR-100 make an easy task, and which a hard one.

The paper uses two easy and two hard subsets and gives their csg (1.53, 1.73, 6.66, 7.38), but not
their classes. They are chosen here by a procedure that can be repeated: random subsets are drawn,
and the one whose csg is nearest to the target, as a ratio, is brought nearer by exchanging classes.

    python -m research.choosing cifar100_32 --output subsets.json

The result ships as ``src/tstar/lab/data/cifar100_subsets.json``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from tstar._version import __version__
from tstar.difficulty import csg
from tstar.lab.data import DataSet, load

TARGETS = {"easy1": 1.53, "easy2": 1.73, "hard1": 6.66, "hard2": 7.38}
SUBSET_SIZE = 10


class Chosen(NamedTuple):
    """A subset of classes (ascending labels), its csg, and the csg that was aimed at."""

    classes: tuple[int, ...]
    csg: float
    target: float

    @property
    def distance(self) -> float:
        """|ln(csg/target)|; infinite for a csg of 0."""
        return abs(math.log(self.csg / self.target)) if self.csg > 0 else math.inf


def choose(
    measure: Callable[[tuple[int, ...]], float],
    num_classes: int,
    targets: Mapping[str, float],
    *,
    draws: int = 200,
    exchanges: int = 400,
    tolerance: float = 0.005,
    seed: int = 0,
) -> dict[str, Chosen]:
    """For each target a subset of ten classes whose csg, ``measure(classes)``, is near it.

    1. Draw ``draws`` random subsets and measure each.
    2. For each target take the nearest, by |ln(csg/target)|.
    3. Exchange one random class for another; keep the exchange if it comes nearer; stop within
       ``tolerance`` or after ``exchanges`` attempts.

    Two targets never get the same subset. All random numbers come from ``seed``.
    """
    random = np.random.default_rng(seed)
    drawn = {
        tuple(sorted(random.permutation(num_classes)[:SUBSET_SIZE].tolist())) for _ in range(draws)
    }
    measured = {classes: measure(classes) for classes in sorted(drawn)}
    result: dict[str, Chosen] = {}
    for name, target in targets.items():
        taken = {chosen.classes for chosen in result.values()}
        drawn_ones = (Chosen(c, csg, target) for c, csg in measured.items() if c not in taken)
        best = min(drawn_ones, key=lambda chosen: chosen.distance)
        for _ in range(exchanges):
            if best.distance <= tolerance:
                break
            leaves = int(random.integers(SUBSET_SIZE))
            others = [c for c in range(num_classes) if c not in best.classes]
            enters = others[int(random.integers(len(others)))]
            classes = tuple(sorted((*best.classes[:leaves], *best.classes[leaves + 1 :], enters)))
            trial = Chosen(classes, measure(classes), target)
            if trial.distance < best.distance and classes not in taken:
                best = trial
        result[name] = best
    return result


def record(data: DataSet, draws: int, exchanges: int, seed: int) -> dict[str, object]:
    """The paper's four subsets chosen from ``data``, with all that is needed to choose them again."""

    def measure(classes: tuple[int, ...]) -> float:
        kept = torch.isin(data.y_train, torch.tensor(classes))
        return float(csg(data.x_train[kept], data.y_train[kept], seed=0))

    how = dict(draws=draws, exchanges=exchanges, seed=seed)
    found = choose(measure, data.num_classes, TARGETS, **how)
    return {
        "command": " ".join(
            ["python -m research.choosing", data.name, *(f"--{k} {v}" for k, v in how.items())]
        ),
        "data": {"name": data.name, "train": len(data.x_train), "checksum": data.checksum()},
        "versions": {"tstar": __version__, "torch": torch.__version__.partition("+")[0]},
        "subsets": {
            name: {
                "target": chosen.target,
                "csg": round(chosen.csg, 4),
                "classes": [data.classes[label] for label in chosen.classes],
            }
            for name, chosen in found.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", default="cifar100", help="with CIFAR-100's classes")
    parser.add_argument("--root", type=Path, help="folder of the data sets")
    for name, default in (("--draws", 200), ("--exchanges", 400), ("--seed", 0)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    made = record(load(args.data, root=args.root), args.draws, args.exchanges, args.seed)
    args.output.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
