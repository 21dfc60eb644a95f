"""The trainings of the second atlas that are most like yours, and what they gained over the plain model.

Two trainings are compared by numbers without units, each a natural logarithm divided by its standard deviation over the
atlas (``SCALES`` of the data file):

    travel    lr·steps·r/(1 − μ) for SGD, lr·steps·r for Adam: how far a weight can go (r: the mean rate over the highest)
    noise     lr/(B·(1 − μ)) for SGD, lr/sqrt(B) for Adam: how noisy the steps are
    passes    steps·B/N: how often each sample is seen
    steps     their number
    features  M
    classes   K

The distance is the root of the mean square over what is known on both sides. A network that normalizes its features in another way
(:func:`tstar.surgery.network.norms_of`) is ``OTHER_NORMS`` further off. Optimizers of another family are not compared, nor is
the fine-tuning of a pretrained network with training from scratch or with that of a network with other norms inside, nor trainings
of ``LONG`` steps and more with shorter ones.

A rate and a decay that were tuned for the plain model are compared with such alone (``tuned`` of the data file): there every training has
the rate that a search found, and its gain is over the plain model at that rate.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from tstar.formula.training import RATE_FACTOR, Training

FILE = "conditions.json"
NEIGHBORS = 20
OTHER_NORMS = 1.0
FAR = 1.5  # no nearer neighbor than this, or one number so far beyond all that were measured: nothing like it was
SHARE = 0.8  # of the interval
LEAVE = "leave"
LONG = 5_000  # steps: between 3,200 and 10,000 nothing was measured, and what helps short trainings may not help long ones
PRETRAINED = "pretrained"  # in place of how a network normalizes, where all of it is fine-tuned
MOST = 10.0  # points: in means a gain counts at most so much, so that one rescued training does not speak for all
RATES = {"faster": 3.0}  # what a recipe multiplies the learning rate by


@dataclass(frozen=True)
class Expectation:
    """What the most similar trainings gained, in points of test accuracy over the plain model at the same rate and decay.

    Args:
        median: of the gains. low, high: where four of five lay, widened to what holds on data sets and networks left out.
        helped, harmed: how many gained and lost more than noise. trainings: how many were looked at.
        distance: to the nearest of them. far: nothing like this training was measured.
        gained: the mean of their gains, each at most ``MOST`` points, is above its standard error.
        rows: the trainings, nearest first, each with its facts, its gain and the keys of its runs.
    """

    median: float
    low: float
    high: float
    helped: int
    harmed: int
    trainings: int
    distance: float
    far: bool
    gained: bool
    rows: tuple[Mapping[str, Any], ...]

    @property
    def supports(self) -> bool:
        """Whether trainings like this one were measured, and gained."""
        return self.gained and not self.far

    def __str__(self) -> str:
        interval = f"{self.low:+.1f} and {self.high:+.1f}"
        return (
            f"Of the {self.trainings} most similar trainings of the atlas{self._steps()} {self.helped} gained and {self.harmed} "
            f"lost more than noise; median {self.median:+.1f} points over the plain model, four of five between {interval}."
        )

    def _steps(self) -> str:
        """How long they were: a training between two others may be like both, and as long as neither."""
        steps = sorted(row["steps"] for row in self.rows if "steps" in row)
        return f" ({steps[0]:,} to {steps[-1]:,} steps)" if steps else ""


# Where not one training can be compared.
NOTHING = Expectation(0.0, 0.0, 0.0, 0, 0, 0, distance=99.0, far=True, gained=False, rows=())


def coordinates(
    training: Training, num_features: float | None, num_classes: float | None, samples: float | None
) -> dict[str, float]:
    """The logarithms of what is known of a training, by name."""
    t, found = training, {}
    rate = RATE_FACTOR if t.rate_factor is None else t.rate_factor
    sgd = t.family == "sgd"
    longer = 1 / max(t.rest, 0.001) if sgd else 1.0
    if t.lr is not None and t.steps is not None:
        found["travel"] = t.lr * t.steps * rate * longer
    if t.lr is not None and t.batch_size is not None:
        found["noise"] = t.lr * longer / (t.batch_size if sgd else math.sqrt(t.batch_size))
    if t.steps is not None and t.batch_size is not None and samples:
        found["passes"] = t.steps * t.batch_size / samples
    if t.steps is not None:
        found["steps"] = t.steps
    if num_features:
        found["features"] = num_features
    if num_classes:
        found["classes"] = num_classes
    # A rate of 1e308 must not become infinity, which is not JSON.
    return {name: math.log(min(value, sys.float_info.max)) for name, value in found.items()}


def distance(mine: Mapping[str, float], theirs: Mapping[str, float], scales: Mapping[str, float]) -> float:  # fmt: skip
    """The root of the mean square difference over the coordinates that both have."""
    shared = [name for name in mine if name in theirs and name in scales]
    if not shared:
        return math.inf
    return math.sqrt(
        sum(((mine[name] - theirs[name]) / scales[name]) ** 2 for name in shared) / len(shared)
    )


@cache
def stored() -> Mapping[str, Any]:
    """The conditions that ship with the package, with the scales of their coordinates."""
    content: Mapping[str, Any] = json.loads((files("tstar.formula") / FILE).read_text("utf-8"))
    return content


def choice(training: Training) -> Mapping[str, Any]:
    """What the atlas says of trainings with this family of optimizers: a recipe, its gain, and how many were measured."""
    mine = (training.family, training.scenario or "scratch", training.tuned)
    for entry in stored()["choices"]:
        if (entry["optimizer"], entry["scenario"], entry["tuned"]) == mine:
            found: Mapping[str, Any] = entry
            return found
    return {"recipe": LEAVE, "trainings": 0}


def recipe_of(training: Training) -> str:
    """The recipe to look for among the measured trainings; where none is favored, BN with T at the plain model's rate."""
    recipe = str(choice(training)["recipe"])
    return "bn" if recipe == LEAVE else recipe


def rate_of(training: Training) -> float:
    """What the recipe for this training multiplies the learning rate by."""
    return RATES.get(choice(training)["recipe"], 1.0)


def nearest(
    training: Training, num_features: float, num_classes: float, samples: float | None, norms: str | None, recipe: str
) -> Expectation:  # fmt: skip
    """What to expect of a recipe, from the trainings of the atlas that are most like this one."""
    mine = coordinates(training, num_features, num_classes, samples)
    inside = None
    if training.scenario == "finetune":
        norms, inside = PRETRAINED, norms
    known = stored()["tuned"] if training.tuned else stored()
    return among(known, mine, training.family, norms, recipe, inside)


def among(
    known: Mapping[str, Any], mine: Mapping[str, float], family: str | None, norms: str | None, recipe: str,
    inside: str | None = None,
) -> Expectation:  # fmt: skip
    """What to expect at these coordinates, from the trainings of ``known``."""
    near = ranked(mine, family, norms, known["rows"], known["scales"], inside)
    found = expected(near, recipe, known["noise"], known["widening"])
    if found is None:
        return NOTHING
    beyond = outside(mine, [row["coordinates"] for _, row in near], known["scales"])
    return replace(found, far=found.far or beyond > FAR, distance=max(found.distance, beyond))


def outside(
    mine: Mapping[str, float], theirs: Sequence[Mapping[str, float]], scales: Mapping[str, float]
) -> float:
    """How far a training lies beyond all others in one of its coordinates, in standard deviations; 0 inside."""
    most = 0.0
    for name, value in mine.items():
        known = [other[name] for other in theirs if name in other]
        if known and name in scales:
            most = max(
                most, (min(known) - value) / scales[name], (value - max(known)) / scales[name]
            )
    return most


def ranked(
    mine: Mapping[str, float],
    family: str | None,
    norms: str | None,
    rows: Sequence[Mapping[str, Any]],
    scales: Mapping[str, float],
    inside: str | None = None,
) -> list[tuple[float, Mapping[str, Any]]]:
    """The trainings of the same family of optimizers, with their distances, nearest first.

    ``inside``: how a pretrained network normalizes; those that are known to do it in another way are left out.
    """
    found = []
    for row in rows:
        if family is not None and row["optimizer"] != family:
            continue
        if (norms == PRETRAINED) != (row["norms"] == PRETRAINED):
            continue
        if inside is not None and row.get("inside", inside) != inside:
            continue
        if "steps" in mine and _is_long(mine) != _is_long(row["coordinates"]):
            continue
        other = norms is not None and row["norms"] != norms
        away = distance(mine, row["coordinates"], scales) + OTHER_NORMS * other
        found.append((away, row))
    return sorted(found, key=lambda pair: pair[0])


def _is_long(place: Mapping[str, float]) -> bool:
    return place.get("steps", 0.0) >= math.log(LONG)


def expected(
    near: Sequence[tuple[float, Mapping[str, Any]]], recipe: str, noise: float, widening: float
) -> Expectation | None:
    """What the nearest trainings that were run with a recipe gained; ``None`` where there are none."""
    usable = [(away, row) for away, row in near if row["gains"].get(recipe) is not None][:NEIGHBORS]
    if not usable:
        return None
    gains = [float(row["gains"][recipe]) for _, row in usable]
    middle = quantile(gains, 0.5)
    low, high = quantile(gains, (1 - SHARE) / 2), quantile(gains, (1 + SHARE) / 2)
    return Expectation(
        median=middle,
        low=middle + widening * (low - middle),
        high=middle + widening * (high - middle),
        helped=sum(gain > noise for gain in gains),
        harmed=sum(gain < -noise for gain in gains),
        trainings=len(gains),
        distance=usable[0][0],
        far=usable[0][0] > FAR,
        gained=surely_positive([max(-MOST, min(gain, MOST)) for gain in gains]),
        rows=tuple({**row, "distance": round(away, 3)} for away, row in usable),
    )


def surely_positive(values: Sequence[float]) -> bool:
    """Whether the mean is above its standard error."""
    n = len(values)
    mean = math.fsum(values) / n
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean > (math.sqrt(squares / (n - 1) / n) if n > 1 else 0.0)


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the order statistics, as NumPy's."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
