"""The paper's figures that need no runs: what T does to a softmax and its loss, and the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tstar.lab.report import style
from tstar.lab.report.style import BLUE, GREEN, INK, LINES, drawn_panels, finish, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOGITS = (4.0, 3.0, 1.0, 0.0, -2.0)
TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 16.0)
CLASSES = 10  # of the loss
SMOOTHING = (0.0, 0.1)
COUNTS = tuple(2**power for power in range(1, 11))
DRAWS = 4000


def softmax(logits: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """exp(ŷ/T) over its sum, along the last axis."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    found: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return found


def softmax_data() -> pd.DataFrame:
    """The probability of each class at several T, for one vector of logits."""
    return pd.DataFrame(
        {"panel": f"T = {T:g}", "temperature": T, "class": i, "logit": logit, "probability": p}
        for T in TEMPERATURES
        for i, (logit, p) in enumerate(
            zip(LOGITS, softmax(np.array(LOGITS), T).tolist(), strict=True), 1
        )
    )


@styled
def draw_softmax(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure, every, names, parts = drawn_panels(frame, columns=5, width=1.6, height=1.8)
    logits = frame.drop_duplicates("class")["logit"]
    for axes, here in zip(every, parts, strict=True):
        axes.bar(here["class"], here["probability"], color=GREEN)
        axes.set(ylim=(0, 1), xticks=here["class"], xticklabels=[f"{x:g}" for x in logits])
        axes.grid(axis="y")
        axes.set_axisbelow(True)
    finish(figure, every, names, ("logit of the class", "probability"))
    return figure


def loss_data() -> pd.DataFrame:
    """Cross-entropy as the right class's logit moves and the others stay 0, with smoothing ε."""
    x = np.linspace(-10, 30, 161)
    logits = np.concatenate([x[:, None], np.zeros((len(x), CLASSES - 1))], axis=1)
    rows = []
    for smoothing in SMOOTHING:
        target = np.full(CLASSES, smoothing / CLASSES)
        target[0] += 1 - smoothing
        for T in TEMPERATURES:
            loss = -np.log(softmax(logits, T)) @ target
            panel = f"label smoothing ε = {smoothing:g}" if smoothing else "without label smoothing"
            columns = {"panel": panel, "smoothing": smoothing, "temperature": T}
            rows.append(pd.DataFrame(columns | {"logit": x, "loss": loss}))
    return pd.concat(rows, ignore_index=True)


@styled
def draw_loss(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure, every, names, parts = drawn_panels(frame, width=3.1, height=2.6)
    from matplotlib import colormaps

    lines = [
        {
            "color": colormaps["viridis"](0.85 * i / len(LINES)),
            "ls": LINES[i],
            "label": f"T = {T:g}",
        }
        for i, T in enumerate(TEMPERATURES)
    ]
    for axes, here in zip(every, parts, strict=True):
        for (_, mine), line in zip(here.groupby("temperature"), lines, strict=True):
            axes.plot(mine["logit"], mine["loss"], **line)
        axes.set_ylim(0, 8)
        axes.grid()
    labels = ("logit of the right class (the other nine are 0)", "cross-entropy")
    finish(figure, every, names, labels, lines if legend else ())
    return figure


def largest_probability_data() -> pd.DataFrame:
    """Quantiles of max softmax for random normal logits, for each number of classes; T = 1."""
    generator = np.random.default_rng(0)
    names = ("low", "q1", "median", "q3", "high")
    rows = []
    for classes in COUNTS:
        largest = softmax(generator.standard_normal((DRAWS, classes)), 1.0).max(axis=1)
        quantiles = np.quantile(largest, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
        rows.append({"panel": "", "classes": classes} | dict(zip(names, quantiles, strict=True)))
    return pd.DataFrame(rows)


@styled
def draw_largest_probability(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure = style.new_figure(4.6, 3.0)
    axes = figure.add_subplot()
    K = frame["classes"]
    axes.vlines(K, frame["low"], frame["high"], color=GREEN, lw=1, label="5 to 95 %")
    axes.vlines(K, frame["q1"], frame["q3"], color=GREEN, lw=7, alpha=0.45, label="quartiles")
    axes.plot(K, frame["median"], "o-", color=GREEN, ms=3, label="median")
    axes.plot(K, 1 / K, ":", color=INK, label="1/K, all classes alike")
    style.powers_of_two(axes, K, [f"{k}" for k in K])
    axes.set(ylim=(0, 1), xlabel="classes K", ylabel="largest probability")
    axes.legend()
    return figure


def sketch_data() -> pd.DataFrame:
    """The layers of a model from input to loss, what each gives, and whether tstar brings it."""
    layers = [
        ("input", "x", False),
        ("layers of\nthe model", "features: M", False),
        ("BatchNorm", "M, each of\nvariance 1", True),
        ("output layer", "logits: K", False),
        ("÷ T", "logits ÷ T", True),
        ("softmax and\ncross-entropy", "", False),
    ]
    return pd.DataFrame(layers, columns=["layer", "gives", "tstar"]).assign(panel="")


@styled
def draw_sketch(frame: pd.DataFrame, legend: bool = True) -> Figure:
    from matplotlib.patches import FancyBboxPatch

    figure = style.new_figure(8.6, 1.5)
    axes = figure.add_subplot()
    step, wide = 1.55, 1.0
    rows = frame[["layer", "gives", "tstar"]].itertuples(index=False, name=None)
    for place, (layer, gives, inserted) in enumerate(rows):
        color = BLUE if inserted else INK
        box: Any = {"boxstyle": "round,pad=0.02,rounding_size=0.08", "fc": "none", "ec": color}
        x = place * step
        axes.add_patch(FancyBboxPatch((x, 0), wide, 0.8, lw=2 if inserted else 1, **box))
        axes.text(x + wide / 2, 0.4, layer, ha="center", va="center", color=color, fontsize=8)
        axes.text(x + wide + 0.27, 0.95, gives, ha="center", va="bottom", fontsize=7)
        if place + 1 < len(frame):
            arrow = {"arrowstyle": "->", "color": INK}
            axes.annotate("", (x + step - 0.03, 0.4), (x + wide + 0.03, 0.4), arrowprops=arrow)
    axes.set(xlim=(-0.1, len(frame) * step - 0.4), ylim=(-0.1, 1.5))
    axes.axis("off")
    return figure
