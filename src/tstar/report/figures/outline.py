"""The outline of a model with BatchNorm inserted just before its output layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tstar.report.style import BLUE, INK, literal, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Stage(NamedTuple):
    """A step of the forward pass: its name, the shape that it gives, and whether it was inserted."""

    name: str
    shape: str
    inserted: bool


class Outline(NamedTuple):
    stages: tuple[Stage, ...]


def outline_data(
    num_features: int | None = None,
    num_classes: int | None = None,
    temperature: float | None = None,
) -> Outline:
    """The stages in order, with numbers for M, K and T where they are given."""
    M = "M" if num_features is None else f"{num_features}"
    K = "K" if num_classes is None else f"{num_classes}"
    T = "T" if temperature is None else f"{temperature:.4g}"
    return Outline(
        (
            Stage("input x", "B × 3 × H × W", False),
            Stage("features E\nand pooling", f"z: B × {M}", False),
            Stage("BatchNorm", f"B × {M}", True),
            Stage("output layer f", f"logits: B × {K}", False),
            Stage(f"÷ {T}", f"B × {K}", True),
            Stage("softmax", f"y: B × {K}", False),
        )
    )


@styled
def draw_outline(data: Outline) -> Figure:
    from matplotlib.patches import FancyBboxPatch

    width, gap, height = 1.5, 0.42, 0.8
    figure = new_figure(8.2, 1.75)
    axes = figure.add_subplot()
    axes.set_axis_off()
    step = width + gap
    for i, stage in enumerate(data.stages):
        color = BLUE if stage.inserted else INK
        axes.add_patch(
            FancyBboxPatch(
                (i * step, 0),
                width,
                height,
                boxstyle="round,pad=0.04",
                facecolor="none",
                edgecolor=color,
                linewidth=2.4 if stage.inserted else 1.0,
            )
        )
        axes.text(
            i * step + width / 2,
            height / 2,
            literal(stage.name),
            ha="center",
            va="center",
            color=color,
            fontweight="bold" if stage.inserted else "normal",
        )
        axes.text(i * step + width / 2, -0.28, literal(stage.shape), ha="center", va="center")
        if stage.inserted:
            axes.text(
                i * step + width / 2,
                height + 0.25,
                "inserted",
                ha="center",
                color=BLUE,
                style="italic",
            )
        if i:
            axes.annotate(
                "",
                (i * step - 0.05, height / 2),
                (i * step - gap + 0.05, height / 2),
                arrowprops={"arrowstyle": "->", "color": INK},
            )
    axes.set_xlim(-0.15, len(data.stages) * step - gap + 0.15)
    axes.set_ylim(-0.5, height + 0.5)
    return figure
