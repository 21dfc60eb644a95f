"""The numbers of a report's first lines: what the law's T gained over each baseline, and what it lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tstar.curves.judging import gains_by_seed
from tstar.curves.resampling import Estimate, estimate
from tstar.errors import TstarError
from tstar.report.records import Records, Sweep

FEW = 5  # conditions below which a bootstrap interval means little
BASELINES = {"plain": "the plain model", "bn_one": "BN at T = 1"}


@dataclass(frozen=True)
class Gain:
    """Accuracy at the law's T with BN minus a baseline's, in points, over the conditions that have both.

    ``better`` counts the conditions where it is above zero.
    """

    baseline: str
    gain: Estimate
    better: int
    conditions: int
    datasets: int

    def sentence(self, metric: str) -> str:
        verb = "raised" if self.gain.value >= 0 else "lowered"
        return (
            f"In {_where(self.conditions)} that ran both, training with BN at the law's T in place of "
            f"{BASELINES[self.baseline]} {verb} {metric} accuracy by {abs(self.gain.value):.2f} points "
            f"(95 % interval {self.gain.low:+.2f} to {self.gain.high:+.2f}) and did better in {self.better} of "
            f"{self.conditions}."
        )


@dataclass(frozen=True)
class Headline:
    """The law's T with BN against the baselines, and against the best T of the grid.

    Attributes:
        gains: over plain and over BN, T = 1; those that were run.
        regret: accuracy at the best T − accuracy at the law's T, over all ``conditions``.
        extrapolated: conditions where the law's T lies outside the grid.
        advice: in words, which law.
    """

    gains: tuple[Gain, ...]
    regret: Estimate
    conditions: int
    datasets: int
    extrapolated: int
    metric: str
    advice: str

    @property
    def few(self) -> bool:
        return self.conditions < FEW

    @property
    def sentences(self) -> tuple[str, ...]:
        """One population in each."""
        missing = [words for name, words in BASELINES.items() if name not in self._baselines]
        lost = (
            f"In {_where(self.conditions, every=True)} with BN and a grid of temperatures accuracy at the law's T "
            f"was {self.distance} points {self.side} that at the best T of the grid (95 % interval {self.span})."
        )
        none = (
            f"Nothing can be said about the gain over {' and '.join(missing)}: not run in the same conditions and "
            "with the same seeds."
        )
        edge = (
            f"In {self.extrapolated} of them the law's T lies outside the grid, where accuracy is taken as "
            "constant: run temperatures around it."
        )
        return (
            *(gain.sentence(self.metric) for gain in self.gains),
            lost,
            *([none] if missing else []),
            *([edge] if self.extrapolated else []),
        )

    @property
    def distance(self) -> str:
        """How far the law's T is from the best T of the grid, in points; :attr:`side` says in which direction."""
        return f"{abs(self.regret.value):.2f}"

    @property
    def side(self) -> str:
        return _side(self.regret.value)

    @property
    def span(self) -> str:
        """The interval of the distance: "0.10 to 0.42 below", "0.05 above to 0.03 below"."""
        low, high = sorted((self.regret.low, self.regret.high), key=abs)
        if _side(low) == _side(high):
            return f"{abs(low):.2f} to {abs(high):.2f} {_side(high)}"
        low, high = self.regret.low, self.regret.high
        return f"{abs(low):.2f} above to {high:.2f} below"

    @property
    def sentence(self) -> str:
        return " ".join(self.sentences)

    @property
    def _baselines(self) -> tuple[str, ...]:
        return tuple(gain.baseline for gain in self.gains)

    @property
    def method(self) -> str:
        """How the numbers were made."""
        few = " With so few conditions the intervals mean little." if self.few else ""
        return (
            f"The law: {self.advice}. tstar.recommend may advise another rate, with the T that belongs to it, or to leave "
            "the model, which is not judged here. A condition is everything but T, norm, backbone, method and seed; each has one vote, over the seeds that both sides have, and a diverged run counts as chance. Between the temperatures "
            "of the grid accuracy is linear in ln T. Intervals are 95 % percentiles of a bootstrap over data sets, "
            f"their conditions and their seeds.{few}"
        )


def _where(count: int, *, every: bool = False) -> str:
    if count == 1:
        return "the one condition"
    return f"{'all' if every else 'the'} {count} conditions"


def _side(regret: float) -> str:
    """On which side of the best T: one that validation accuracy chose can be beaten on the test set."""
    return "above" if round(regret, 2) < 0 else "below"


def headline(records: Records) -> Headline:
    """From all conditions with BN, three temperatures and a law's T."""
    sweeps = [s for s in records.with_norm("batch", 3) if s.recommended is not None]
    if not sweeps:
        raise TstarError(
            "A headline needs conditions with BN, three temperatures and a known M; there are none."
        )
    judged = [sweep.judged(float(sweep.recommended or 1)) for sweep in sweeps]
    found = [_gain(sweeps, baseline) for baseline in BASELINES]
    return Headline(
        gains=tuple(gain for gain in found if gain is not None),
        regret=estimate([_regrets(sweep) for sweep in sweeps], _places(sweeps)),
        conditions=len(sweeps),
        datasets=len(set(_places(sweeps))),
        extrapolated=sum(one.extrapolated for one in judged),
        metric=records.metric,
        advice=records.formula,
    )


def _gain(sweeps: Sequence[Sweep], baseline: str) -> Gain | None:
    found = [
        (s, gains_by_seed(s.condition, s.curve, float(s.recommended or 1), baseline, s.metric))
        for s in sweeps
    ]
    compared = [(sweep, gains) for sweep, gains in found if len(gains)]
    if not compared:
        return None
    places = _places([sweep for sweep, _ in compared])
    return Gain(
        baseline,
        estimate([gains for _, gains in compared], places),
        sum(float(gains.mean()) > 0 for _, gains in compared),
        len(compared),
        len(set(places)),
    )


def _regrets(sweep: Sweep) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Points below the oracle for each seed of the whole grid."""
    curve = sweep.curve.matched()
    there, best = (
        curve.at_by_seed(T, sweep.metric) for T in (float(sweep.recommended or 1), curve.best)
    )
    return np.array([100 * (best[s] - there[s]) for s in sorted(there.keys() & best.keys())])


def _places(sweeps: Sequence[Sweep]) -> list[str]:
    return [str(sweep.facts.get("dataset")) for sweep in sweeps]
