"""A method's search over temperatures, with its cost in training runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tstar.errors import TstarError, require
from tstar.methods.interface import Method, Searching
from tstar.methods.label_smoothing import Smoothed
from tstar.methods.temperature_check import TemperatureCheck


@dataclass(frozen=True)
class Trial:
    """One training run of a search: its temperature and its score on validation data.

    ``score`` is ``None`` where the run failed (diverged, say).
    """

    temperature: float
    score: float | None


@dataclass(frozen=True)
class Search:
    """The best trial, all of them in the order in which they ran, and so the cost."""

    best: Trial
    trials: tuple[Trial, ...]

    @property
    def runs(self) -> int:
        """The cost: how many training runs it took."""
        return len(self.trials)


def search(method: Method, score: Callable[[Method], float | None], *, seed: int = 0) -> Search:
    """Train each candidate of a method and keep the best on validation data.

    Args:
        method: one that searches, as ``temperature-check`` does.
        score: trains the method it is given and returns its **validation** accuracy, or ``None`` if
            the run failed.
        seed: of Optuna's sampler; the grid has no chance in it.

    Of equal scores the temperature nearest to 1 (in ln T) wins.
    """
    inner = _searching(method)
    trials: list[Trial] = []

    def run(temperature: float) -> float | None:
        value = score(one_candidate(method, temperature))
        if value is not None and not math.isfinite(value):
            value = None
        trials.append(Trial(temperature, value))
        return value

    if inner.sampler == "grid":
        for temperature in inner.candidates:
            run(temperature)
    else:
        _with_optuna(inner, run, seed)
    done = [trial for trial in trials if trial.score is not None]
    if not done:
        raise TstarError(
            f"At least one run of {method.name!r} must finish, but all {len(trials)} failed; lower the "
            "learning rate or narrow the range of β."
        )
    best = max(done, key=lambda t: (t.score or 0.0, -abs(math.log(t.temperature))))
    return Search(best, tuple(trials))


def one_candidate(method: Method, temperature: float) -> Method:
    """The method of one training run of a search."""
    if not isinstance(method, Searching):
        raise TstarError(f"Method {method.name!r} does not search; train it as it is.")
    return method.at(temperature)


def searches(method: Method) -> bool:
    """Whether a method takes a search of several training runs."""
    return runs_of(method) > 1


def runs_of(method: Method) -> int:
    """How many training runs a method takes: the points of its search, else 1."""
    inner = method.method if isinstance(method, Smoothed) else method
    return inner.points if isinstance(inner, TemperatureCheck) else 1


def _searching(method: Method) -> TemperatureCheck:
    inner = method.method if isinstance(method, Smoothed) else method
    if not isinstance(inner, TemperatureCheck):
        raise TstarError(f"Method {method.name!r} does not search; train it as it is.")
    return inner


def _with_optuna(method: TemperatureCheck, run: Callable[[float], float | None], seed: int) -> None:
    optuna = require("optuna", "compare")
    samplers = {
        "tpe": optuna.samplers.TPESampler,
        "gp": optuna.samplers.GPSampler,
        "random": optuna.samplers.RandomSampler,
        "qmc": optuna.samplers.QMCSampler,
    }
    # Optuna logs every trial to stderr; whoever searches reports the trials themselves.
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            direction="maximize", sampler=samplers[method.sampler](seed=seed)
        )
        for _ in range(method.points):
            trial = study.ask()
            log_T = trial.suggest_float("ln_T", -math.log(method.highest), -math.log(method.lowest))
            value = run(math.exp(log_T))
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, value)
    finally:
        optuna.logging.set_verbosity(verbosity)
