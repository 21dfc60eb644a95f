"""The paper's figures that need no runs: what T does to a softmax and its loss, and the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from tstar.lab.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOGITS = np.array([4.0, 3.0, 1.0, 0.0, -2.0])
# Each T of a figure, with its line.
TEMPERATURES = {0.5: "-", 1.0: "--", 2.0: ":", 4.0: "-.", 16.0: (0, (5, 1, 1, 1, 1, 1))}
CLASSES = 10  # of the loss
SMOOTHING = (0.0, 0.1)
DRAWS = 4000


def softmax_data() -> pd.DataFrame:
    """The probability of each class at several T, for one vector of logits."""
    rows = []
    for T in TEMPERATURES:
        columns = {"panel": f"T = {T:g}", "temperature": T, "class": range(1, len(LOGITS) + 1)}
        columns |= {"logit": LOGITS, "probability": softmax(LOGITS / T)}
        rows.append(pd.DataFrame(columns))
    return pd.concat(rows, ignore_index=True)


def draw_softmax(frame: pd.DataFrame) -> Figure:
    def draw(axes: Axes, rows: pd.DataFrame) -> None:
        axes.bar(rows["class"], rows["probability"], color=style.GREEN)
        axes.set(ylim=(0, 1), xticks=rows["class"])
        axes.set_xticklabels([f"{logit:g}" for logit in rows["logit"]])
        axes.grid(axis="y")

    labels = ("logit of the class", "probability")
    return style.draw_panels(frame, draw, labels, columns=5, width=1.6, height=1.8)


def loss_data() -> pd.DataFrame:
    """Cross-entropy as the right class's logit moves and the others stay 0, with smoothing ε."""
    x = np.linspace(-10, 30, 161)
    logits = np.concatenate([x[:, None], np.zeros((len(x), CLASSES - 1))], axis=1)
    rows = []
    for smoothing in SMOOTHING:
        target = np.full(CLASSES, smoothing / CLASSES)
        target[0] += 1 - smoothing
        for T in TEMPERATURES:
            loss = -np.log(softmax(logits / T, axis=1)) @ target
            panel = f"label smoothing ε = {smoothing:g}" if smoothing else "without label smoothing"
            columns = {"panel": panel, "smoothing": smoothing, "temperature": T}
            rows.append(pd.DataFrame(columns | {"logit": x, "loss": loss}))
    return pd.concat(rows, ignore_index=True)


def draw_loss(frame: pd.DataFrame) -> Figure:
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0, 0.8, len(TEMPERATURES)))
    lines: dict[float, Any] = {
        T: {"ls": line, "color": shade, "label": f"T = {T:g}"}
        for (T, line), shade in zip(TEMPERATURES.items(), shades, strict=True)
    }

    def draw(axes: Axes, rows: pd.DataFrame) -> None:
        for T, mine in rows.groupby("temperature"):
            axes.plot(mine["logit"], mine["loss"], **lines[T])
        axes.set_ylim(0, 8)
        axes.grid()

    labels = ("logit of the right class (the other nine are 0)", "cross-entropy")
    return style.draw_panels(frame, draw, labels, width=3.1, height=2.6, legend=[*lines.values()])


def largest_probability_data() -> pd.DataFrame:
    """Quantiles of max softmax for random normal logits, for each number of classes; T = 1."""
    generator = np.random.default_rng(0)
    rows = []
    for classes in 2 ** np.arange(1, 11):
        largest = softmax(generator.standard_normal((DRAWS, classes)), axis=1).max(axis=1)
        rows.append({"panel": "", "classes": int(classes)} | style.quantiles(largest, ends=0.05))
    return pd.DataFrame(rows)


def draw_largest_probability(frame: pd.DataFrame) -> Figure:
    figure = style.new_figure(4.6, 3.0)
    axes = figure.add_subplot()
    K = frame["classes"]
    axes.vlines(K, frame["low"], frame["high"], color=style.GREEN, lw=1, label="5 to 95 %")
    axes.vlines(K, frame["q1"], frame["q3"], color=style.GREEN, lw=7, alpha=0.45, label="quartiles")
    axes.plot(K, frame["median"], "o-", color=style.GREEN, ms=3, label="median")
    axes.plot(K, 1 / K, ":", color=style.INK, label="1/K, all classes alike")
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


def draw_sketch(frame: pd.DataFrame) -> Figure:
    from matplotlib.patches import FancyBboxPatch

    figure = style.new_figure(8.6, 1.5)
    axes = figure.add_subplot()
    step, wide = 1.55, 1.0
    arrow = {"arrowstyle": "->", "color": style.INK}
    for place, layer, gives, inserted in frame[["layer", "gives", "tstar"]].itertuples(name=None):
        color = style.BLUE if inserted else style.INK
        box: Any = {"boxstyle": "round,pad=0.02,rounding_size=0.08", "fc": "none", "ec": color}
        x = place * step
        axes.add_patch(FancyBboxPatch((x, 0), wide, 0.8, lw=2 if inserted else 1, **box))
        axes.text(x + wide / 2, 0.4, layer, ha="center", va="center", color=color, fontsize=8)
        axes.text(x + wide + 0.27, 0.95, gives, ha="center", va="bottom", fontsize=7)
        if place + 1 < len(frame):
            axes.annotate("", (x + step - 0.03, 0.4), (x + wide + 0.03, 0.4), arrowprops=arrow)
    axes.set(xlim=(-0.1, len(frame) * step - 0.4), ylim=(-0.1, 1.5))
    axes.axis("off")
    return figure
