"""The numbers of a report's first lines: what the law's T gained over each baseline, and lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.lab.curves.judging import gains_by_seed
from tstar.lab.curves.resampling import Estimate, estimate, what_is_drawn
from tstar.lab.report.records import Records, Sweep

LEAST = 3  # conditions: over fewer there is no headline
BASELINES = {"plain": "the plain model", "bn_one": "BN at T = 1"}


@dataclass(frozen=True)
class Line:
    """One number of the headline: a mean difference in points over some conditions.

    ``over`` is a baseline, or "best" for the best T of the grid. ``better`` counts the conditions
    in which the difference is above zero.
    """

    over: str
    value: Estimate
    better: int
    conditions: int

    def sentence(self, metric: str, judged: str) -> str:
        value, low, high = self.value
        if self.over == "best":
            side = "above" if value > 0 else "below"
            return (
                f"In the {self.conditions} conditions with BN and a grid of temperatures, accuracy "
                f"at {judged} was {abs(value):.2f} points {side} that at the best T of the grid "
                f"(95 % interval of the difference {low:+.2f} to {high:+.2f})."
            )
        verb = "raised" if value >= 0 else "lowered"
        return (
            f"In the {self.conditions} conditions that ran both, training with BN at {judged} "
            f"in place of {BASELINES[self.over]} {verb} {metric} accuracy by {abs(value):.2f} "
            f"points (95 % interval {low:+.2f} to {high:+.2f}) and did better in {self.better} of "
            f"{self.conditions}."
        )


@dataclass(frozen=True)
class Headline:
    """The law's T with BN against the baselines, and against the best T of the grid.

    ``sentences`` say the lines, one population in each; ``method`` says how they were made.
    """

    lines: tuple[Line, ...]
    sentences: tuple[str, ...]
    method: str


def headline(records: Records) -> Headline:
    """The headline of the conditions with BN, three temperatures and a T to judge; at least three."""
    sweeps = records.judged(LEAST)
    lines, silent = [], []
    for over in (*BASELINES, "best"):
        compared = [(s, gain) for s in sweeps if len(gain := _gains(s, over))]
        if len(compared) < LEAST:
            silent.append(BASELINES.get(over, "the best T"))
            continue
        gains = [gain for _, gain in compared]
        value = estimate(gains, places([s for s, _ in compared]), average=records.averaging)
        better = sum(float(gain.mean()) > 0 for gain in gains)
        lines.append(Line(over, value, better, len(compared)))
    sentences = [line.sentence(records.metric, records.label) for line in lines]
    if silent:
        sentences.append(
            f"Nothing can be said about the gain over {' and '.join(silent)}: too few conditions "
            "ran it with the same seeds."
        )
    outside = sum(s.judged(s.law).extrapolated for s in sweeps if s.law is not None)
    if outside:
        sentences.append(
            f"In {outside} of them {records.label} lies outside the grid, where accuracy is taken as "
            "constant: run temperatures around it."
        )
    method = (
        f"The formula: {records.formula}. tstar.recommend may advise another rate, or to leave the "
        "model, which is not judged here. A condition is everything but T, norm, method and "
        "seed; each has one vote, over the seeds that both sides have "
        f"({records.averaging}), and a diverged run counts as chance. Between the temperatures of "
        "the grid accuracy is linear in ln T. Intervals are 95 % percentiles of a bootstrap over "
        f"{what_is_drawn(places(sweeps))}."
    )
    return Headline(tuple(lines), tuple(sentences), method)


def _gains(sweep: Sweep, over: str) -> NDArray[np.float64]:
    """Points of the law's T above a baseline, for each seed of both."""
    assert sweep.law is not None
    if over != "best":
        return gains_by_seed(sweep.condition, sweep.curve, sweep.law, over, sweep.metric)
    curve = sweep.curve.matched()
    there, best = (curve.at_by_seed(T, sweep.metric) for T in (sweep.law, curve.best))
    return np.array([100 * (there[s] - best[s]) for s in sorted(there.keys() & best.keys())])


def places(sweeps: Sequence[Sweep]) -> list[str]:
    """The data set of each."""
    return [str(sweep.facts.get("dataset")) for sweep in sweeps]
