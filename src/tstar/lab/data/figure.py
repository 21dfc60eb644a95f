"""The picture of a csg result. It draws what the record holds and computes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from tstar.difficulty import Csg
from tstar.imports import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 30  # more class names than this do not fit on an axis
_BLUE = "#2b6ca3"


def draw_csg(result: Csg, path: str | os.PathLike[str] | None = None) -> Figure:
    """Three panels: the spectrum, the class similarities, the most confused pairs."""
    figure: Figure = require("matplotlib.figure", "lab").Figure((15, 4.8), layout="constrained")
    spectrum, heatmap, bars = figure.subplots(1, 3)
    spectrum.plot(result.spectrum, marker="o", color=_BLUE)
    spectrum.set_ylim(0, max(1.0, 1.06 * float(result.spectrum[-1])))
    spectrum.set(title="Spectrum of the Laplacian", xlabel="index i", ylabel="eigenvalue λ$_i$")
    shown = result.similarity.copy()
    np.fill_diagonal(shown, np.nan)  # a class is always like itself: the scale is for the others
    image = heatmap.imshow(shown, cmap="magma", vmin=0, vmax=max(np.nanmax(shown), 1e-9))
    heatmap.set(title="Similarity of classes", xlabel="class", ylabel="class")
    if result.num_classes <= _NAMED:
        names = [_short(c) for c in result.classes]
        heatmap.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        heatmap.set_yticks(range(len(names)), names, fontsize=8)
    figure.colorbar(image, ax=heatmap, shrink=0.85)
    pairs = result.hardest_pairs(12)
    bars.barh(range(len(pairs)), [alike for *_, alike in pairs], color=_BLUE)
    labels = [f"{_short(a)} – {_short(b)}" for a, b, _ in pairs]
    bars.set_yticks(range(len(pairs)), labels, fontsize=8)
    bars.invert_yaxis()
    bars.set(title="Most alike", xlabel="similarity (1 − Bray–Curtis)", xlim=(0, 1))
    low, high = result.interval
    figure.suptitle(
        f"csg = {result.value:.4g}  (95 %: {low:.4g}–{high:.4g}), {result.num_classes} classes"
    )
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def _short(name: object) -> str:
    text = str(name).replace("$", r"\$")
    return text if len(text) <= 18 else text[:17] + "…"
