"""Rivals that need no search, as parts of a run; named ``research.rival_parts:NAME``.

An optimizer is ``f(parameters, lr=…, weight_decay=…)``, a method ``f(model, setting) -> Recipe``.
Schedule-free tests an average of the weights, for which the statistics of the norms are measured
anew. The parts of results/rivals that are not here are in the history.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections import deque
from typing import Any

import torch
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch import Tensor, nn

from tstar.lab.methods.common import cross_entropy
from tstar.lab.recipe import Recipe, Setting

KEPT = 50  # batches, the last ones, with which norms are measured anew
_latest: list[torch.optim.Optimizer] = []  # the optimizer of the run under way, if it averages


def prodigy(parameters: Any, lr: float, weight_decay: float, d0: float = 1e-6) -> Prodigy:
    with contextlib.redirect_stdout(io.StringIO()):  # it says that its decay is decoupled
        return Prodigy(parameters, lr=lr, weight_decay=weight_decay, d0=d0)


def _averaging(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    _latest[:] = [optimizer]
    return optimizer


def free_adamw(parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    made = AdamWScheduleFree(parameters, lr=lr, weight_decay=weight_decay)
    made.train()
    return _averaging(made)


def free_sgd(parameters: Any, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    made = SGDScheduleFree(parameters, lr=lr, weight_decay=weight_decay)
    made.train()
    return _averaging(made)


def _remeasure(model: nn.Module, batches: deque[Tensor]) -> None:
    """The running statistics of every batch norm, as the mean over these batches."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    with torch.no_grad():
        for batch in batches:
            model(batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def schedule_free(model: nn.Module, setting: Setting) -> Recipe:
    """The model as it is; at the end the optimizer's average, and the norms measured anew."""
    kept: deque[Tensor] = deque(maxlen=KEPT)

    def finish(trained: nn.Module, inputs: Tensor, targets: Tensor) -> dict[str, float]:
        _latest[0].eval()  # type: ignore[attr-defined]
        _remeasure(trained, kept)
        return {}

    changed = copy.deepcopy(model)
    return Recipe(
        changed,
        cross_entropy(setting),
        on_batch=lambda m, inputs, y, lr: kept.append(inputs),
        finish=finish,
    )
