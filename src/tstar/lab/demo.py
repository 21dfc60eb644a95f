"""The whole story on real data in under a minute: ask for the advice, train with and without it.

The data are handwritten digits that come with the package. As they are they are too easy for
anything to matter, so the task is made hard: few training images, noise on every pixel, and wrong
labels for almost a third of the training images.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import nn

from tstar.advice import Recommendation, recommend
from tstar.lab import methods
from tstar.lab.data import DataSet, load
from tstar.lab.models import fitting_model
from tstar.lab.statistics import noise
from tstar.lab.training import Config, running

TRAIN_IMAGES = 400
NOISE = 0.2  # standard deviation of the pixel noise, as a share of the gray scale
WRONG = 0.3  # share of the training labels that are replaced by another class
NETWORK, FEATURES = "mlp", 256
STEPS, BATCH, LR = 300, 32, 0.03
WAYS = ("default", "advised")  # the model as it comes, and with the advice


@dataclass(frozen=True)
class Demo:
    """The advice; for each way and seed the test accuracy after every epoch (in %), and how right
    each test sample is at the end (0 or 1)."""

    advice: Recommendation
    curves: dict[str, list[list[float]]]
    right: dict[str, list[list[float]]]

    def accuracy(self, way: str) -> float:
        """The mean over the seeds at the last epoch, in percent."""
        return 100 * fmean(map(fmean, self.right[way]))

    @property
    def sentence(self) -> str:
        """What the advice gained, or that it gained nothing beyond noise."""
        if self.advice.leave:
            return "The advice is to leave this model as it is, so there is nothing to compare."
        plain, advised = (self.accuracy(way) for way in WAYS)
        chance = 100 * noise(self.right["advised"], self.right["default"])
        beyond = "more" if abs(advised - plain) > chance else "no more"
        return (
            f"With the advice {advised:.1f} % are right, without it {plain:.1f} %: "
            f"{advised - plain:+.1f} points over {len(self.right['default'])} seeds, "
            f"{beyond} than chance explains (±{chance:.1f})."
        )


@cache
def hard_digits() -> DataSet:
    """Digits with few training images, noisy pixels and wrong labels; the same for every run."""
    everything = load("digits")
    data = everything.subset(train=TRAIN_IMAGES)
    generator = torch.Generator().manual_seed(0)
    # What is not trained on is tested on: a larger test set, and so less noise in what it says.
    trained = {image.tobytes() for image in data.x_train.numpy()}
    unused = torch.tensor([image.tobytes() not in trained for image in everything.x_train.numpy()])

    def noisy(x: Any) -> Any:
        noise = torch.randn(x.shape, generator=generator) * (NOISE * 255)
        return (x + noise).round().clamp(0, 255).to(torch.uint8)

    wrong = torch.rand(len(data.y_train), generator=generator) < WRONG
    shift = torch.randint(1, data.num_classes, (len(wrong),), generator=generator)
    return replace(
        data,
        name="hard digits",
        x_train=noisy(data.x_train),
        y_train=torch.where(wrong, (data.y_train + shift) % data.num_classes, data.y_train),
        x_test=noisy(torch.cat([data.x_test, everything.x_train[unused]])),
        y_test=torch.cat([data.y_test, everything.y_train[unused]]),
    )


def network(seed: int) -> nn.Module:
    return fitting_model(NETWORK, hard_digits(), FEATURES, seed)


def train_one(way: str, seed: int) -> tuple[list[float], list[float]]:
    """Test accuracy in percent after each epoch, and how right each sample is at the end."""
    torch.set_num_threads(1)  # this process is ours alone: one of a pool, one thread each
    data = hard_digits()
    look: dict[str, Any] = {"test_curve": True, "padding": 1, "flip": False, "rotation": 0.0}
    config = Config(steps=STEPS, batch_size=BATCH, lr=LR, val_fraction=0.0, **look)
    how: dict[str, Any] = {"num_classes": 10, "seed": seed}
    trained = running.run(methods.get(way), lambda: network(seed), data, config, **how)
    return [100 * share for share in trained.result.curves["test_accuracy"]], trained.right()


def run(
    seeds: int = 4, workers: int = 2, progress: Callable[[int, int], None] = lambda *_: None
) -> Demo:
    """Ask for the advice, train both ways on ``workers`` processes, and collect the results."""
    how: dict[str, Any] = {"optimizer": "sgd", "lr": LR, "momentum": 0.9, "weight_decay": 5e-4}
    how |= {"steps": STEPS, "batch_size": BATCH, "samples": TRAIN_IMAGES, "scenario": "scratch"}
    advice = recommend(network(0), schedule="cosine", **how)
    # Every process imports torch afresh: no fork with threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(train_one, way, seed) for way in WAYS for seed in range(seeds)]
        for done, _ in enumerate(as_completed(futures), start=1):
            progress(done, len(futures))
    curves, right = zip(*(future.result() for future in futures), strict=True)
    each = (
        {way: [*some[i * seeds :][:seeds]] for i, way in enumerate(WAYS)}
        for some in (curves, right)
    )
    return Demo(advice, *each)


def draw(demo: Demo, path: Path) -> None:
    """Test accuracy over the epochs, one thin line per seed, the means in bold."""
    from tstar.lab.report.style import COLORS, look, new_figure, save

    with look():
        figure = new_figure(6.4, 3.6)
        axes = figure.subplots()
        for way, color, name in zip(WAYS, COLORS, ("plain", "as advised"), strict=False):
            epochs = range(1, len(demo.curves[way][0]) + 1)
            for curve in demo.curves[way]:
                axes.plot(epochs, curve, color=color, lw=0.6, alpha=0.5)
            means = [fmean(epoch) for epoch in zip(*demo.curves[way], strict=True)]
            axes.plot(epochs, means, color=color, lw=2, label=name)
        axes.set(xlabel="epoch", ylabel="test accuracy [%]")
        axes.legend(loc="lower right")
    save(figure, path)
