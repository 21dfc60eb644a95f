"""The result of ``tstar.csg``: a number with its reasons."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEW = 5.0  # fewer deciding samples than this make a row of S an accident


@dataclass(frozen=True)
class Pair:
    """Two classes and how alike their neighborhoods are, from 0 to 1."""

    a: Hashable
    b: Hashable
    similarity: float

    def __str__(self) -> str:
        return f"{printable(self.a)} – {printable(self.b)}: {self.similarity:.3f}"


@dataclass(frozen=True, eq=False, repr=False)
class Csg:
    """The cumulative spectral gradient of a data set, and why it is what it is.

    ``float(result)`` is the value.

    Attributes:
        value: csg of the one draw of ``seed``.
        interval: 95 %: from a bootstrap of the drawn samples; with several draws that differ, where single draws fall.
        draws: the value of every draw; the first is ``value``.
        expectation: S (K×K): the share of class j among the neighbors of class i; rows sum to one.
        similarity: W (K×K): 1 − BrayCurtis of the rows of S.
        spectrum: (K,) eigenvalues of the Laplacian of W, ascending.
        classes: the K classes, sorted where they sort.
        samples: how many samples of each class were really used.
        indices: their positions in the data, for each class.
        floored: the share of samples whose box volume was at its floor (see ``regime``).
        effective_samples: the fewest samples that decide a row of S; small where box volumes differ wildly.
        notes: what was done to the data on the way.
    """

    value: float
    interval: tuple[float, float]
    draws: tuple[float, ...]
    expectation: NDArray[np.float64]
    similarity: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    classes: tuple[Hashable, ...]
    samples: tuple[int, ...]
    indices: tuple[NDArray[np.int64], ...]
    neighbors: int
    seed: int
    distance: str
    floored: float
    effective_samples: float
    num_samples: int
    notes: tuple[str, ...] = ()

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def regime(self) -> str:
        """``"floored"`` (every box at its floor: the neighbors' classes alone count), ``"volumes"``, ``"mixed"``."""
        return "floored" if self.floored == 1 else "mixed" if self.floored > 0 else "volumes"

    def hardest_pairs(self, n: int = 10) -> list[Pair]:
        """The n pairs of classes that are most alike."""
        rows, columns = np.triu_indices(self.num_classes, 1)
        values = self.similarity[rows, columns]
        order = np.argsort(-values, kind="stable")[:n]
        return [
            Pair(self.classes[rows[i]], self.classes[columns[i]], float(values[i])) for i in order
        ]

    def __float__(self) -> float:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Csg) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.value, self.draws, self.classes))

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Csg({self.value:.4g}, interval=({low:.4g}, {high:.4g}), classes={self.num_classes})"
        )

    def __str__(self) -> str:
        low, high = self.interval
        few, many = min(self.samples), max(self.samples)
        used = f"{few}" if few == many else f"{few}–{many}"
        lines = [
            f"csg = {self.value:.4g}   (95 %: {low:.4g}–{high:.4g}, {self._basis()})",
            f"  {self.num_classes} classes, {self.num_samples} samples; {used} of each class drawn "
            f"with seed {self.seed}, {self.neighbors} neighbors, {self.distance}",
            f"  regime: {self._regime_text()}",
        ]
        lines += [f"  note: {note}" for note in self.notes]
        hardest = [str(pair) for pair in self.hardest_pairs(5)]
        return "\n".join([*lines, "  most alike:", *(f"    {pair}" for pair in hardest)])

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def _basis(self) -> str:
        """What the interval is taken from."""
        if len(set(self.draws)) > 1:
            return f"over {len(self.draws)} draws"
        whole = sum(self.samples) == self.num_samples
        why = "; every draw takes all samples" if whole else "; the draws give one value"
        return "bootstrap" + (why if len(self.draws) > 1 else "")

    def _regime_text(self) -> str:
        text = {
            "floored": "floored (the box volumes are all at their floor; the neighbors' classes alone count)",
            "volumes": "box volumes used",
            "mixed": f"mixed ({self.floored:.0%} of the box volumes are at their floor)",
        }[self.regime]
        if self.effective_samples < min(_FEW, *self.samples):
            text += (
                f"; volumes differ so much that {self.effective_samples:.1f} samples decide a class: "
                "the value is of little use"
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON types, without the K×K matrices' rows of S."""
        return {
            "csg": self.value,
            "interval": list(self.interval),
            "draws": list(self.draws),
            "classes": [
                c if isinstance(c, int | float | str | bool) else str(c) for c in self.classes
            ],
            "samples": list(self.samples),
            "num_samples": self.num_samples,
            "neighbors": self.neighbors,
            "seed": self.seed,
            "distance": self.distance,
            "regime": self.regime,
            "floored": self.floored,
            "effective_samples": self.effective_samples,
            "spectrum": self.spectrum.tolist(),
            "similarity": self.similarity.tolist(),
            "notes": list(self.notes),
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The spectrum, the similarity of classes and the hardest pairs, as a figure; saved where ``path`` says."""
        from tstar.difficulty.plotting import figure

        return figure(self, path)


def presented(result: Csg) -> Csg:
    """The same result with its classes sorted, where they can be; computed values do not change."""
    try:
        order = sorted(range(result.num_classes), key=lambda i: result.classes[i])  # type: ignore[arg-type,return-value]
    except TypeError:
        return result
    grid = np.ix_(order, order)
    return replace(
        result,
        expectation=result.expectation[grid],
        similarity=result.similarity[grid],
        classes=tuple(result.classes[i] for i in order),
        samples=tuple(result.samples[i] for i in order),
        indices=tuple(result.indices[i] for i in order),
    )
