"""Temperature scaling: one temperature, found after training, on validation data."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, require
from tstar.methods.calibration import (
    BOUNDS,
    Reliability,
    ScalingFit,
    calibration_error,
    draw_panel,
    fit_temperature,
    reliability,
)
from tstar.methods.common import Plain, at_temperature, predict
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.finding import tempered_heads
from tstar.surgery.tempering import temper


@dataclass(frozen=True)
class Calibration:
    """What temperature scaling did, on the data that it was fitted on."""

    temperature: float
    nll_before: float
    nll_after: float
    ece_before: float
    ece_after: float
    before: Reliability
    after: Reliability
    at_bound: bool

    def numbers(self) -> dict[str, float]:
        """The scalars, named as a run records them."""
        return {
            "temperature": self.temperature,
            "val_nll_before": self.nll_before,
            "val_nll_after": self.nll_after,
            "val_ece_before": self.ece_before,
            "val_ece_after": self.ece_after,
            "at_bound": float(self.at_bound),
        }

    def plot(self, path: str | Path | None = None) -> Any:
        """Reliability diagrams before and after, as a matplotlib figure, also saved to ``path``."""
        require("matplotlib", "compare")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        before, after = figure.subplots(1, 2, sharey=True)
        draw_panel(before, self.before, f"before: ECE {self.ece_before:.3f}")
        draw_panel(after, self.after, f"after: ECE {self.ece_after:.3f}")
        figure.supxlabel("confidence (largest probability)", fontsize=9)
        before.set_ylabel("accuracy")
        if path is not None:
            figure.savefig(path)
        return figure


def calibrate(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    bounds: tuple[float, float] = BOUNDS,
    inplace: bool = False,
) -> tuple[nn.Module, Calibration]:
    """A trained model with its logits divided by the T that suits them, and what that did.

    The model must return logits. A head that is tempered already is rescaled, any other is
    tempered without a norm: the predicted classes are the same ones.

    Args:
        model: a trained classifier.
        inputs: validation inputs, as the model takes them; not the data it was trained on.
        targets: their classes.
        bounds: the lowest and highest factor on the temperature.
        inplace: change the model itself in place of a copy.
    """
    if len(targets) == 0:
        raise TstarError("Temperature scaling needs validation data; hold some out.")
    result = _measure(predict(model, inputs), targets, bounds)
    if result.at_bound:
        warnings.warn(
            f"T = {result.temperature:.3g} is the bound of the search: these data have no best temperature "
            "(perhaps all are classified correctly). Use more validation data.",
            TstarWarning,
            stacklevel=2,
        )
    if not tempered_heads(model):
        return temper(model, result.temperature, norm=None, inplace=inplace), result
    scaled = model if inplace else copy.deepcopy(model)
    _scale(scaled, result.temperature)
    return scaled, result


def _measure(logits: Tensor, targets: Tensor, bounds: tuple[float, float]) -> Calibration:
    fit: ScalingFit = fit_temperature(logits, targets, bounds)
    scaled = logits.double() / fit.temperature
    return Calibration(
        temperature=fit.temperature,
        nll_before=fit.nll_before,
        nll_after=fit.nll_after,
        ece_before=calibration_error(logits.softmax(1), targets),
        ece_after=calibration_error(scaled.softmax(1), targets),
        before=reliability(logits, targets),
        after=reliability(scaled, targets),
        at_bound=fit.at_bound,
    )


def _scale(model: nn.Module, factor: float) -> None:
    for head in tempered_heads(model).values():
        head.set_temperature(float(head.temperature) * factor)


@dataclass(frozen=True)
class TemperatureScaling(Plain):
    r"""Train with CE(z, y); then T = argmin_{T>0} CE(z/T, y) on validation data, weights frozen.

    Eval mode is enforced and restored; the argmax, and so the accuracy, never changes. NLL and ECE
    on the validation data before and after are recorded.

    Reference: Guo et al. 2017, "On Calibration of Modern Neural Networks" (S). The bounds of T, 0.01
    and 100, are ours.
    """

    name = "temperature-scaling"
    needs = frozenset({"validation"})

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        def finish(model: nn.Module, inputs: Tensor, targets: Tensor) -> dict[str, float]:
            if len(targets) == 0:
                raise TstarError(
                    "Method 'temperature-scaling' needs validation data; hold out a part of "
                    "the training set (val_fraction > 0)."
                )
            result = _measure(predict(model, inputs), targets, BOUNDS)
            _scale(model, result.temperature)
            return result.numbers()

        # Trained with a head at T = 1, so that afterwards only a buffer changes.
        recipe = at_temperature(model, 1.0, facts, norm=None)
        recipe.finish = finish
        return recipe
