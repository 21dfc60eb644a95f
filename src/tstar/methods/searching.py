"""A method's search over temperatures, with its cost in training runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tstar.errors import TstarError, require
from tstar.methods.interface import Method
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
    inner = _search_of(method)
    if inner is None:
        raise TstarError(f"Method {method.name!r} does not search; train it as it is.")
    trials: list[Trial] = []

    def run(temperature: float) -> float | None:
        value = score(method.at(temperature))  # type: ignore[attr-defined]
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


def runs_of(method: Method) -> int:
    """How many training runs a method takes: the points of its search, else 1."""
    inner = _search_of(method)
    return 1 if inner is None else inner.points


def _search_of(method: Method) -> TemperatureCheck | None:
    inner = method.method if isinstance(method, Smoothed) else method
    return inner if isinstance(inner, TemperatureCheck) else None


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
