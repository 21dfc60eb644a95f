"""The whole story on real data in under a minute: ask for the advice, train with and without it.

The data are handwritten digits that come with the package. As they are they are too easy for
anything to matter, so the task is made hard: few training images, noise on every pixel, and wrong
labels for almost a third of the training images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import torch

from tstar.advice import Recommendation, recommend
from tstar.lab.comparing import comparison_study
from tstar.lab.data import DataSet, load
from tstar.lab.models import fitting_model
from tstar.lab.sweep.run import run_study

TRAIN_IMAGES = 400
NOISE = 0.2  # standard deviation of the pixel noise, as a share of the gray scale
WRONG = 0.3  # share of the training labels that are replaced by another class
NETWORK, FEATURES = "mlp", 256
STEPS, BATCH = 300, 32
WAYS = ("default", "advised")  # the model as it comes, and with the advice


@dataclass(frozen=True)
class Demo:
    """The advice; and for each way and seed the test accuracy after every epoch, in percent."""

    advice: Recommendation
    curves: dict[str, list[list[float]]]

    def accuracy(self, way: str) -> float:
        """The mean over the seeds at the last epoch, in percent."""
        return fmean(curve[-1] for curve in self.curves[way])

    @property
    def sentence(self) -> str:
        """What the advice gained, over all seeds and on each."""
        if self.advice.leave:
            return "The advice is to leave this model as it is, so there is nothing to compare."
        plain, advised = (self.accuracy(way) for way in WAYS)
        pairs = zip(self.curves["advised"], self.curves["default"], strict=True)
        gains = [advised[-1] - plain[-1] for advised, plain in pairs]
        advice = self.advice
        changes = ["BatchNorm"] if advice.norm else []
        changes += [f"T = {advice.temperature:.3g}", f"lr {advice.lr:.3g}"]
        return (
            f"Plain, at lr {advice.training.lr:.3g}, {plain:.1f} % are right; as advised "
            f"({', '.join(changes)}) {advised:.1f} %: {fmean(gains):+.1f} points over "
            f"{len(gains)} seeds ({min(gains):+.1f} to {max(gains):+.1f})."
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


def ask() -> Recommendation:
    """The advice for the network, which trains at the usual rate and decay."""
    network = fitting_model(NETWORK, hard_digits(), FEATURES, seed=0)
    how: dict[str, Any] = {"optimizer": "sgd", "schedule": "cosine", "scenario": "scratch"}
    how |= {"steps": STEPS, "batch_size": BATCH, "samples": TRAIN_IMAGES}
    usual = recommend(network, **how).training
    return recommend(network, optimizer=usual)


def run(
    seeds: int = 4, workers: int = 2, progress: Callable[[int, int], None] = lambda *_: None
) -> Demo:
    """Ask for the advice, train both ways on ``workers`` processes, and collect the results."""
    advice = ask()
    training = advice.training.to_dict()
    del training["samples"], training["tuned"]  # no keys of a study
    training |= {"test_curve": True, "padding": 1, "flip": False, "rotation": 0.0}
    training |= {"val_fraction": 0.0, "num_features": FEATURES}
    study = comparison_study(hard_digits(), NETWORK, WAYS, seeds=seeds, **training)
    runs: dict[Any, list[float]] = {}

    def note(run: Mapping[str, Any]) -> None:
        curve = run["curves"]["test_accuracy"]
        runs[run["method"], run["seed"]] = [100 * share for share in curve]

    with TemporaryDirectory() as folder:
        how: dict[str, Any] = {"workers": workers, "device": "cpu", "on_run": note}
        how["update"] = lambda tally: progress(tally.finished, tally.total)
        run_study(study, Path(folder, "runs.db"), **how)
    return Demo(advice, {way: [runs[way, seed] for seed in range(seeds)] for way in WAYS})


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
