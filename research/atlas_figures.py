"""The figures of the atlas: accuracy against T, where it gets too hot, and what every rule loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tstar.lab.curves import Curve
from tstar.lab.report.style import (
    COLORS,
    FAINT,
    INK,
    LINES,
    MARKERS,
    look,
    new_figure,
    panels,
    short,
)

GRID = (0.25, 1, 4, 16, 64, 256)
LABELS = {
    "default": "BN, T = 1",
    "sqrt-m": "sqrt(M)",
    "heated-up": "heated-up, sqrt(M)/16",
    "adacos-fixed": "AdaCos, fixed",
    "normface-bound": "NormFace bound",
    "ours-base": "paper: base",
    "ours-csg": "paper: csg",
    "ours-cn": "paper: cn",
    "ours-csgcn": "paper: csg + cn",
}


def curves(found: Sequence[Curve]) -> Any:
    """Test accuracy below the best of the grid, against T: one panel per data set, one line per width."""
    names = sorted({str(case.facts["dataset"]) for case in found})
    widths = sorted({int(case.facts["num_features"]) for case in found})
    with look():
        figure, axes = panels(len(names))
        for name, ax in zip(names, axes, strict=True):
            for case in sorted(found, key=lambda c: c.facts["num_features"]):
                if case.facts["dataset"] != name:
                    continue
                i = widths.index(int(case.facts["num_features"]))
                y = 100 * case.means()
                ax.plot(case.temperatures, y - y.max(), color=COLORS[i], ls=LINES[i], marker=MARKERS[i], ms=3, lw=1.2)  # fmt: skip
            _temperatures(ax)
            ax.set_ylim(-20, 1)
            ax.grid(axis="y")
            ax.set_title(
                f"{short(name.replace('_32', '').replace('cifar100+tinyimagenet', 'cifar100 + tiny'), 20)}, K = {_classes(found, name)}"
            )
        for ax in axes[-4:]:
            ax.set_xlabel("temperature")
        for ax in axes[::4]:
            ax.set_ylabel("points below the best")
        lines = [figure.axes[0].plot([], [], color=COLORS[i], ls=LINES[i], marker=MARKERS[i], ms=3, label=f"M = {width}")[0] for i, width in enumerate(widths)]  # fmt: skip
        figure.legend(handles=lines, loc="outside lower center", ncols=len(widths))
    return figure


def cliffs(found: Sequence[Curve]) -> Any:
    """The T at which a tenth of the accuracy is lost, against what the theory says it goes with."""
    with look():
        figure, axes = panels(2, width=3.4, height=2.8)
        kinds = {"sgd": ("lr·steps·M/K", 0.5, axes[0]), "adamw": ("lr·steps·M", 1.0, axes[1])}
        domains = sorted({str(case.facts.get("domain")) for case in found})
        for optimizer, (label, power, ax) in kinds.items():
            points = []
            for case in found:
                T = too_hot(case, 0.1)
                f = case.facts
                if f["optimizer"] != optimizer or T is None:
                    continue
                x = f["lr"] * f["steps"] * f["num_features"]
                points.append((x / f["num_classes"] if optimizer == "sgd" else x, T, str(f.get("domain"))))  # fmt: skip
            for i, domain in enumerate(domains):
                mine = [(x, T) for x, T, d in points if d == domain]
                if mine:
                    ax.plot(*zip(*mine, strict=True), MARKERS[i], color=COLORS[i], ms=3.5, alpha=0.8, label=domain)  # fmt: skip
            if points:
                x, T = (np.array([p[k] for p in points]) for k in (0, 1))
                level = np.exp(np.mean(np.log(T) - power * np.log(x)))
                ends = np.array([x.min(), x.max()])
                ax.plot(ends, level * ends**power, color=INK, lw=1, ls="--", label=f"{level:.2g}·x^{power:g}")  # fmt: skip
            ax.set(xscale="log", yscale="log", xlabel=label, ylabel="T that costs a tenth of the accuracy", title=optimizer)  # fmt: skip
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_formatter("")
            ax.grid(color=FAINT)
            ax.legend()
    return figure


def regrets(rules: pd.DataFrame, part: str, labels: dict[str, str]) -> Any:
    """Mean regret of every rule of one part, with its interval."""
    mine = rules[rules["part"] == part].sort_values("regret", ascending=False)
    with look():
        figure = new_figure(6.0, 0.26 * len(mine) + 1.0)
        ax = figure.subplots()
        y = np.arange(len(mine))
        low, high = mine["regret"] - mine["regret_low"], mine["regret_high"] - mine["regret"]
        ax.errorbar(mine["regret"], y, xerr=[low.clip(0), high.clip(0)], fmt="o", color=COLORS[0], ms=4, lw=1.2)  # fmt: skip
        ax.axvline(mine["noise"].iloc[0], color=INK, lw=1, ls=":", label="noise alone")
        ax.set_yticks(y, [labels.get(name, name) for name in mine["rule"]])
        ax.set_xlabel("points below the oracle (95 % interval over data sets)")
        ax.grid(axis="x")
        ax.legend()
    return figure


def too_hot(case: Curve, share: float = 0.5) -> float | None:
    """The cliff: the T above the best one where ``share`` of the accuracy above chance is lost.

    Linear in ln T between grid points; ``None`` if the grid ends before.
    """
    case = case.matched()
    values = case.means("test")
    chance = 1 / float(case.facts["num_classes"])
    peak = int(np.argmax(values))
    level = values[peak] - share * (values[peak] - chance)
    x = np.log(case.temperatures)
    for i in range(peak, len(values) - 1):
        if values[i + 1] < level:
            part = (values[i] - level) / (values[i] - values[i + 1])
            return float(np.exp(x[i] + part * (x[i + 1] - x[i])))
    return None


def _temperatures(ax: Any) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(GRID, [f"{T:g}" for T in GRID])
    ax.minorticks_off()


def _classes(found: Sequence[Curve], name: str) -> int:
    return next(int(c.facts["num_classes"]) for c in found if c.facts["dataset"] == name)
