"""The picture of a csg result. It draws what the record holds and computes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.difficulty.record import Csg
from tstar.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 30  # more class names than this do not fit on an axis
_BLUE = "#2b6ca3"


def figure(result: Csg, path: str | os.PathLike[str] | None = None) -> Figure:
    """Three panels: the spectrum, the class similarities, the most confused pairs."""
    module = require("matplotlib.figure", "plot")
    fig: Figure = module.Figure(figsize=(15, 4.8), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    _spectrum(left, result)
    _heatmap(fig, middle, result)
    _pairs(right, result)
    low, high = result.interval
    fig.suptitle(
        f"csg = {result.value:.4g}  (95 %: {low:.4g}–{high:.4g}), {result.num_classes} classes"
    )
    if path is not None:
        fig.savefig(path, dpi=120)
    return fig


def _spectrum(ax: Any, result: Csg) -> None:
    marker = "o" if result.num_classes <= 60 else None
    ax.plot(np.arange(result.num_classes), result.spectrum, marker=marker, color=_BLUE)
    ax.set_ylim(0, max(1.0, 1.06 * float(result.spectrum[-1])))
    ax.set(title="Spectrum of the Laplacian", xlabel="index i", ylabel="eigenvalue λ$_i$")
    ax.grid(alpha=0.3)
    ax.annotate(
        "rises early: classes overlap\nflat near 0: classes are apart",
        (0.97, 0.04),
        xycoords="axes fraction",
        ha="right",
        fontsize=8,
        color="0.35",
    )


def _heatmap(fig: Any, ax: Any, result: Csg) -> None:
    shown = result.similarity.copy()
    np.fill_diagonal(shown, np.nan)  # a class is always like itself: the scale is for the others
    image = ax.imshow(shown, cmap="magma", vmin=0, vmax=max(np.nanmax(shown), 1e-9))
    ax.set(title="Similarity of classes")
    if result.num_classes <= _NAMED:
        names = [_short(c) for c in result.classes]
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
    else:
        ax.set(xlabel="class", ylabel="class")
    fig.colorbar(image, ax=ax, shrink=0.85)


def _pairs(ax: Any, result: Csg) -> None:
    pairs = result.hardest_pairs(12)
    labels = [f"{_short(pair.a)} – {_short(pair.b)}" for pair in pairs]
    ax.barh(range(len(pairs)), [pair.similarity for pair in pairs], color=_BLUE)
    ax.set_yticks(range(len(pairs)), labels, fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set(title="Most alike", xlabel="similarity (1 − Bray–Curtis)")
    ax.grid(axis="x", alpha=0.3)


def _short(name: object) -> str:
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 18 else text[:17] + "…"
