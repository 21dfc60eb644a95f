"""What the advice costs: ``tstar.recommend`` on ResNet50 with 2,000 images, against a forward pass of them.

    python benchmarks/recommend.py --output results/overhead/recommend.json

Both in one process, one thread, processor time; the least of three. No training takes place.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torchvision

import tstar

IMAGES, PIXELS, BATCH = 2000, 64, 100


def least(work: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = torchvision.models.resnet50(num_classes=100)
    images = torch.rand(IMAGES, 3, PIXELS, PIXELS)
    data = torch.utils.data.TensorDataset(images, torch.arange(IMAGES) % 100)

    def advise() -> None:
        tstar.recommend(model, data, optimizer=("sgd", 0.1), steps=2000, batch_size=64)

    def forward() -> None:
        with torch.inference_mode():
            for part in images.split(BATCH):
                model.eval()(part)

    advise()
    mine, theirs = least(advise), least(forward, 1)
    result = {
        "images": IMAGES, "pixels": PIXELS, "recommend_seconds": round(mine, 4), "forward_seconds": round(theirs, 2),
        "ratio": round(mine / theirs, 5), "torch": torch.__version__, "processor": platform.processor() or platform.machine(),
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if given.output:
        given.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
