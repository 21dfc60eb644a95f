"""What the paper's studies cost: runs, image passes and floating-point operations, counted and not guessed.

    python -m research.cost studies/paper/*.toml -o results/cost/paper.md

A model's operations are counted on the meta device (multiply and add as two); a training step is taken as
three forward passes. Distillation's teachers and searched temperatures cost more than one run: such studies
are underestimated. Time on a GPU follows from what it sustains, which this script cannot know.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from research.catalogue import nowhere
from tstar.models import build
from tstar.sweep.spec import Spec
from tstar.sweep.study import load_study

# Training images and pixels of the official data (own four fifths where there is no official split).
DATA = {
    "cifar10": (50_000, 32, 10),
    "cifar100": (50_000, 32, 100),
    "cifar100@10": (25_000, 32, 10),
    **{f"cifar100-{name}": (5_000, 32, 10) for name in ("easy1", "easy2", "hard1", "hard2")},
    "tiny-imagenet": (100_000, 64, 200),
    "stl10": (5_000, 96, 10),
    "gtsrb": (26_640, 224, 43),
    "eurosat": (21_600, 64, 10),
    "isic-2019": (20_265, 224, 8),
    "caltech101": (6_941, 224, 101),
    "flowers102": (2_040, 224, 102),
    "oxford-iiit-pet": (3_680, 224, 37),
    "dtd": (3_760, 224, 47),
    "cub-200-2011": (5_994, 224, 200),
}


@cache
def forward_flops(model: str, features: int | None, pixels: int, classes: int) -> float:
    """Operations of one forward pass of one image."""
    with nowhere():
        network = build(model, classes, num_features=features).eval()
        image = torch.empty(1, 3, pixels, pixels)
        with FlopCounterMode(display=False) as counter:
            network(image)
    return float(counter.get_total_flops())


def cost(spec: Spec) -> tuple[float, float]:
    """(image passes, operations) of one run."""
    images, pixels, classes = DATA[spec.dataset]
    config = spec.config
    passes = config.steps * config.batch_size if config.steps else images * config.epochs
    each = forward_flops(spec.model, spec.num_features, spec.size or pixels, classes)
    return float(passes), 3 * passes * each


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="+", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    lines = [
        "# What the paper's studies cost",
        "",
        "| study | runs | image passes | operations | hours at 20 TFLOP/s |",
        "|---|--:|--:|--:|--:|",
    ]
    total = [0.0, 0.0, 0.0]
    for path in given.studies:
        study = load_study(path)
        passes, operations = (sum(part) for part in zip(*map(cost, study.specs), strict=True))
        for i, value in enumerate((len(study), passes, operations)):
            total[i] += value
        lines.append(row(study.name, len(study), passes, operations))
    lines += [row("**all**", int(total[0]), total[1], total[2]), ""]
    text = __doc__ or ""
    lines += [
        " ".join(text.split("\n\n")[2].split()),
        "",
        f"Rebuild: `{text.splitlines()[2].strip()}`",
    ]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(given.out.read_text(encoding="utf-8"))


def row(name: str, runs: int, passes: float, operations: float) -> str:
    hours = operations / 20e12 / 3600
    return f"| {name} | {runs:,} | {passes / 1e9:.2f} billion | {operations:.1e} | {hours:,.0f} |"


if __name__ == "__main__":
    main()
