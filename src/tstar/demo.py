"""The whole story on real data in about a minute: train at T = 1, at T*, and over a grid of temperatures.

The data are scikit-learn's handwritten digits, which ship with it. As they come they are too easy for the
temperature to matter, so the task is made hard: few training images, noise on every pixel, and wrong labels
for almost a third of the training images.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from tstar.data import DataSet
    from tstar.surgery.head import Norm

TRAIN_IMAGES = 400
NOISE = 0.2  # standard deviation of the pixel noise, as a share of the gray scale
WRONG = 0.3  # share of the training labels that are replaced by another class
NETWORK = "vgg9"
WIDTHS = (32, 96)
TEMPERATURES = (1.0, 8.0, 32.0)
STEPS = 300
BATCH = 32
LR = 0.1


@dataclass(frozen=True)
class Cell:
    """One training run: width M, temperature T (with or without BatchNorm before the head), seed."""

    num_features: int
    temperature: float
    norm: Norm | None
    seed: int


@dataclass(frozen=True)
class Point:
    """Test accuracy in percent over the seeds of one width and temperature."""

    mean: float
    spread: float
    n: int


@dataclass(frozen=True)
class Demo:
    """What was measured: ``points[M, T, norm]``, and the temperature recommended for each width."""

    points: dict[tuple[int, float, Norm | None], Point]
    recommended: dict[int, float]
    notices: tuple[str, ...]

    def plain(self, M: int) -> Point:
        """The model as it comes: no BatchNorm before the head, T = 1."""
        return self.points[M, 1.0, None]

    def advised(self, M: int) -> Point:
        return self.points[M, self.recommended[M], "batch"]

    def best(self, M: int) -> tuple[float, Point]:
        """The best temperature on the grid, chosen with hindsight on the test set."""
        grid = {T: p for (width, T, norm), p in self.points.items() if width == M and norm}
        T = max(grid, key=lambda t: grid[t].mean)
        return T, grid[T]


@cache
def hard_digits() -> DataSet:
    """Digits with few training images, noisy pixels and wrong labels; seeded, the same for every run."""
    import torch

    from tstar.data import load

    everything = load("digits")
    data = everything.subset(train=TRAIN_IMAGES)
    generator = torch.Generator().manual_seed(0)
    # What is not trained on is tested on: a larger test set, and so less noise in what it says.
    trained = {image.tobytes() for image in data.x_train.numpy()}
    unused = torch.tensor([image.tobytes() not in trained for image in everything.x_train.numpy()])
    x_test = torch.cat([data.x_test, everything.x_train[unused]])
    y_test = torch.cat([data.y_test, everything.y_train[unused]])

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
        x_test=noisy(x_test),
        y_test=y_test,
    )


def train_one(cell: Cell) -> float:
    """Test accuracy in percent of one run; a pure function of the cell."""
    import torch

    from tstar.methods import get
    from tstar.training import Config
    from tstar.training.running import run

    torch.set_num_threads(1)  # this process is ours alone: one of a pool, one thread each
    data = hard_digits()
    config = Config(
        steps=STEPS, batch_size=BATCH, lr=LR, val_fraction=0.0, padding=1, flip=False, rotation=0.0
    )
    result = run(
        get("fixed", temperature=cell.temperature, norm=cell.norm),
        lambda: _network(cell.num_features, cell.seed),
        data,
        config,
        num_classes=data.num_classes,
        seed=cell.seed,
    ).result
    return 100 * (result.accuracies(data.num_classes)[1] or 0.0)


def run(
    *, seeds: int = 3, workers: int = 2, progress: Callable[[int, int], None] | None = None
) -> Demo:
    """Ask for the advice, train every cell on ``workers`` processes, and collect the results."""
    advice = {M: _advise(M) for M in WIDTHS}
    recommended = {M: round(float(a), 4) for M, a in advice.items()}
    cells = [
        Cell(M, T, norm, seed)
        for seed in range(seeds)
        for M in reversed(WIDTHS)  # the slowest first, so that no process waits at the end
        for T, norm in _grid(recommended[M])
    ]
    scores: dict[tuple[int, float, Norm | None], list[float]] = {}
    for done, (cell, score) in enumerate(_train_all(cells, workers), start=1):
        scores.setdefault((cell.num_features, cell.temperature, cell.norm), []).append(score)
        if progress is not None:
            progress(done, len(cells))
    points = {
        key: Point(
            statistics.mean(values),
            statistics.stdev(values) if len(values) > 1 else 0.0,
            len(values),
        )
        for key, values in scores.items()
    }
    first = next(iter(advice.values()))
    return Demo(points, recommended, tuple(n.message for n in first.notices))


def _grid(recommended: float) -> list[tuple[float, Norm | None]]:
    """The model as it comes, and with BatchNorm at every temperature."""
    return [(1.0, None), *((T, "batch") for T in sorted({*TEMPERATURES, recommended}))]


def _network(num_features: int, seed: int) -> nn.Module:
    from tstar.models.fitting import fitting_model

    return fitting_model(NETWORK, hard_digits(), num_features, seed)


def _advise(num_features: int) -> Any:
    """T for the demo's own rate: the figure is about T alone."""
    from tstar.formula.equation import explain

    K = hard_digits().num_classes
    return explain(num_features, K, optimizer=("sgd", LR), steps=STEPS, batch_size=BATCH)


def _train_all(cells: list[Cell], workers: int) -> Iterator[tuple[Cell, float]]:
    """(cell, score) as they finish. Every process imports torch afresh: no fork with threads."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(train_one, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()


def draw(demo: Demo, path: str) -> None:
    """Accuracy against T, one curve per width, with the plain model's and the recommended T."""
    from tstar.checking.figure import Line
    from tstar.checking.figure import draw as draw_lines

    lines = [
        Line(
            f"M = {M}",
            sorted(
                (T, p.mean, p.spread) for (m, T, norm), p in demo.points.items() if m == M and norm
            ),
            demo.plain(M).mean,
            advised,
        )
        for M, advised in demo.recommended.items()
    ]
    n = next(iter(demo.points.values())).n
    draw_lines(lines, path, f"Hard digits, VGG9: mean and standard deviation of {n} seeds")
