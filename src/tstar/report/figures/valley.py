"""What a fit of α and β can tell: the loss over both, whose flat valley is all that the runs leave open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.curves import lines
from tstar.errors import TstarError
from tstar.fitting.fitter import LEAST_TEMPERATURES
from tstar.fitting.flatness import TOLERANCE, flat_directions
from tstar.fitting.model import BOUNDS, Problem, problem
from tstar.formula.coefficients import get
from tstar.report.records import Records, Sweep
from tstar.report.style import INK, color_bar, finish, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.0, 100 * TOLERANCE, 0.3, 1.0, 3.0, 10.0)  # points lost
SHOWN = 3.0  # α is drawn as far as some T loses no more points
_STEPS = 81
_EDGES = np.array([BOUNDS["alpha"], BOUNDS["beta"]])


class ValleyPanel(NamedTuple):
    """Points lost against the best pair that is drawn, ``lost[T, α]``.

    The axes are α and T = α·sqrt(M) + β at the middle ``width`` M: along β itself the valley would be a slanted thread.
    ``best`` is (α, β). ``open``: less than 0.1 points are lost up to the bound of the search, so that α and β cannot be told apart.
    """

    title: str
    width: float
    alpha: tuple[float, ...]
    temperature: tuple[float, ...]
    lost: NDArray[np.float64]
    best: tuple[float, float]
    open: bool


class Valley(NamedTuple):
    panels: tuple[ValleyPanel, ...]
    paper: tuple[float, float]
    metric: str


def valley_data(records: Records) -> Valley:
    """All conditions with BN in one panel, then each environment of several widths."""
    every = records.with_norm("batch", LEAST_TEMPERATURES)
    groups = [(f"all {len(every)} conditions", every)]
    for e in records.environments("batch"):
        enough = [s for s in e.sweeps if len(s.temperatures) >= LEAST_TEMPERATURES]
        groups.append((e.title, tuple(enough)))
    wide = [
        (title, sweeps)
        for title, sweeps in groups
        if len({s.facts.get("num_features") for s in sweeps}) > 1
    ]
    if not wide:
        raise TstarError(
            f"The valley of α and β needs conditions with BN, {LEAST_TEMPERATURES} temperatures at least and two "
            "feature counts M, got none; add them to the study."
        )
    if len(wide) == 2:  # a single environment: both are the same
        wide = wide[1:]
    found = tuple(_panel(title, sweeps, records) for title, sweeps in wide)
    paper = get("base")
    return Valley(found, (paper.alpha, paper.beta), records.chosen_on)


def _panel(title: str, sweeps: Sequence[Sweep], records: Records) -> ValleyPanel:
    curves = [sweep.curve for sweep in sweeps]
    task = problem(curves, lines(curves, records.chosen_on), "base")
    root = float(np.median(task.design[:, 0]))  # sqrt(M)
    highest = max(sweep.temperatures[-1] for sweep in sweeps)
    T = np.geomspace(task.minimum, max(highest, 2 * task.minimum), _STEPS)
    alpha = np.linspace(*BOUNDS["alpha"], _STEPS)
    near = np.flatnonzero((_lost(task, root, alpha, T) <= SHOWN).any(axis=0))
    alpha = np.linspace(alpha[max(near[0] - 1, 0)], alpha[min(near[-1] + 1, _STEPS - 1)], _STEPS)
    lost = _lost(task, root, alpha, T)
    t, a = np.unravel_index(int(np.argmin(lost)), lost.shape)
    best = (float(alpha[a]), float(T[t] - alpha[a] * root))
    return ValleyPanel(
        title,
        root**2,
        tuple(map(float, alpha)),
        tuple(map(float, T)),
        lost,
        best,
        any(flat.unidentified for flat in flat_directions(task, np.array(best), _EDGES)),
    )


def _lost(
    task: Problem, root: float, alpha: NDArray[np.float64], T: NDArray[np.float64]
) -> NDArray[np.float64]:
    """100·(loss − its least) for every pair of α and T at the middle width."""
    slope, height = np.meshgrid(alpha, T)
    loss = 100 * task.loss(np.stack([slope, height - slope * root], axis=-1))
    lost: NDArray[np.float64] = loss - loss.min()
    return lost


@styled
def draw_valley(data: Valley) -> Figure:
    from matplotlib.colors import BoundaryNorm

    figure, every = panels(len(data.panels), columns=3, width=2.8, height=2.4)
    colors = {"levels": LEVELS, "cmap": "viridis_r", "extend": "max"}
    image: Any = None
    for axes, panel in zip(every, data.panels, strict=True):
        grid = (panel.alpha, panel.temperature, panel.lost)
        image = axes.contourf(*grid, norm=BoundaryNorm(LEVELS, 256, extend="max"), **colors)
        axes.contour(*grid, levels=[LEVELS[1]], colors=["black"], linewidths=1)
        for (alpha, beta), marker in ((panel.best, "x"), (data.paper, "o")):
            T = max(alpha * panel.width**0.5 + beta, panel.temperature[0])
            axes.plot(alpha, T, marker, mfc="none", mec="black", ms=6, mew=1.4, clip_on=True)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        axes.set_xlim(panel.alpha[0], panel.alpha[-1])
        axes.set_ylim(panel.temperature[0], panel.temperature[-1])
    color_bar(figure, image, every, f"points of {data.metric} accuracy lost")
    finish(
        figure,
        every,
        [f"{p.title}, M = {p.width:.0f}" + ", not told apart" * p.open for p in data.panels],
        ("α", "T = α·sqrt(M) + β at the middle width M"),
        [
            {"color": INK, "lw": 1, "label": "0.1 points lost"},
            {"color": INK, "ls": "", "marker": "x", "label": "best"},
            {"mec": INK, "mfc": "none", "ls": "", "marker": "o", "label": "the paper's base"},
        ],
    )
    return figure
