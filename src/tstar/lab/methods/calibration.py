"""Calibration: how well confidence fits accuracy, and the temperature found after training."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError, guarded, warn
from tstar.imports import require
from tstar.lab.measuring import calibration_error, predict
from tstar.lab.methods.common import at_temperature, missing
from tstar.lab.recipe import Recipe, Setting
from tstar.output_layer import call, in_mode, tempered_heads, unwrap
from tstar.samples import pair
from tstar.surgery import temper

LOWEST, HIGHEST = 0.01, 100.0  # bounds of T


def nll(logits: Tensor, targets: Tensor, temperature: float = 1.0) -> float:
    """The mean of −log softmax(z/T)_y, in float64."""
    return F.cross_entropy(logits.double() / temperature, targets).item()


def fit_temperature(logits: Tensor, targets: Tensor) -> tuple[float, bool]:
    r"""T = argmin over [0.01, 100] of CE(z/T, y), searched over ln(1/T); and whether it is a bound.

    CE is convex in 1/T, hence has one valley in ln(1/T), which a bounded scalar search finds. T = 1
    is kept if the search finds nothing better, so the NLL never gets worse. If every sample is
    classified correctly the NLL falls forever as T falls: then T is as low as the bound, or
    rounding, lets it be. The logits (N, K) are unnormalized, never probabilities.
    """
    z = logits.detach().double()
    if not len(targets) or not bool(torch.isfinite(z).all()):
        raise TstarError(
            f"logits must be finite and at least one, got {len(targets)} with NaN or infinity "
            "among them; has the model diverged?"
        )
    found = require("scipy.optimize", "lab").minimize_scalar(
        lambda log_beta: nll(z, targets, math.exp(-log_beta)),
        bounds=(-math.log(HIGHEST), -math.log(LOWEST)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    best = math.exp(-float(found.x))
    if nll(z, targets, best) > nll(z, targets):
        best = 1.0
    separable = bool((z.argmax(dim=1) == targets).all())
    return best, separable or not LOWEST * 1.001 <= best <= HIGHEST / 1.001


@dataclass(frozen=True)
class Calibration:
    """What temperature scaling did, on the data that it was fitted on."""

    temperature: float
    val_nll_before: float
    val_nll_after: float
    val_ece_before: float
    val_ece_after: float
    at_bound: float


def _scale(model: nn.Module, logits: Tensor, targets: Tensor) -> Calibration:
    """Multiply the temperature of the model's tempered heads by the one that suits its logits."""
    T, at_bound = fit_temperature(logits, targets)
    for head in tempered_heads(model).values():
        head.set_temperature(float(head.temperature) * T)
    scaled = logits.double() / T
    before, after = (calibration_error(z.softmax(1), targets) for z in (logits, scaled))
    losses = nll(logits, targets), nll(logits, targets, T)
    return Calibration(T, *losses, before, after, float(at_bound))


@guarded("calibrate() failed while the model ran on your data")
def calibrate(
    model: nn.Module, data: Any, *, head: str | None = None
) -> tuple[nn.Module, Calibration]:
    """A copy of a trained model whose logits are divided by the T that suits them; and its effect.

    The model must return logits. A head that is tempered already is rescaled, any other is tempered
    without a norm: :func:`tstar.fold` puts T into its weights. The predicted classes stay the same.

    Args:
        model: a trained classifier.
        data: validation data, which it was not trained on: a ``DataLoader`` or other batches of
            inputs and targets (a dictionary's other entries are the model's keywords).
        head: the path of the output layer, if the model has several.
    """
    net, device = unwrap(model), next(model.parameters()).device
    example, logits, known = None, [], []
    with in_mode(net), torch.no_grad():
        for batch in data:
            inputs, labels = pair(batch)
            if isinstance(batch, Mapping):
                inputs = {name: value for name, value in batch.items() if value is not labels}
            example = inputs if example is None else example
            output = call(net, inputs, device)
            output = output["logits"] if isinstance(output, Mapping) else output
            logits.append(getattr(output, "logits", output).float().cpu())
            known.append(torch.as_tensor(labels).cpu())
    if example is None:
        raise TstarError("calibrate needs at least one batch of data, got none.")
    scaled = copy.deepcopy(net)
    if not tempered_heads(scaled):
        scaled = temper(scaled, 1.0, head=head, example_input=example, norm=None, inplace=True)
    result = _scale(scaled, torch.cat(logits), torch.cat(known))
    if result.at_bound:
        warn(
            f"T = {result.temperature:.3g} is the bound of the search: these data have no best "
            "temperature (perhaps all are classified correctly). Use more validation data."
        )
    return scaled, result


def temperature_scaling(model: nn.Module, setting: Setting) -> Recipe:
    r"""Train with CE(z, y); then T = argmin_{T>0} CE(z/T, y) on validation data, weights frozen.

    Eval mode is enforced and restored; the argmax, and so the accuracy, never changes. NLL and ECE
    on the validation data before and after are recorded.

    Reference: Guo et al. 2017, "On Calibration of Modern Neural Networks" (S). The bounds of T,
    0.01 and 100, are ours.
    """

    def finish(model: nn.Module, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        if len(targets) == 0:
            raise missing("temperature-scaling", "validation data")
        return asdict(_scale(model, predict(model, inputs), targets))

    # Trained with a head at T = 1, so that afterwards only a buffer changes.
    recipe = at_temperature(model, 1.0, setting, norm=None)
    recipe.finish = finish
    return recipe
