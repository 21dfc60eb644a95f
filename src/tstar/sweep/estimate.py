"""What a sweep will cost, from a short probe of each kind of run."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from statistics import mean
from typing import NamedTuple

from tstar.sweep.execute import DataKey, build_model, get_method, inputs_for, load_data
from tstar.sweep.plan import Todo
from tstar.sweep.spec import Spec


class Kind(NamedTuple):
    """What the time of a training step depends on."""

    dataset: str
    size: int | None
    model: str
    num_features: int | None
    batch_size: int


@dataclass(frozen=True)
class Estimate:
    """Seconds of one worker for what is missing; ``probed`` of ``kinds`` kinds of run were timed."""

    seconds: float
    runs: int
    probed: int
    kinds: int


def kind_of(spec: Spec) -> Kind:
    return Kind(spec.dataset, spec.size, spec.model, spec.num_features, spec.config.batch_size)


def estimate(
    plan: Todo, *, data_root: str | None = None, budget: float = 20.0, device: str = "cpu"
) -> Estimate:
    """Time a few steps of each kind of run that is missing, the most frequent first.

    When ``budget`` seconds are used up, the kinds that are left count as the mean of those timed
    with the same model (or of all).
    """
    todo = [spec.resolved(plan.places) for spec in plan.todo]
    kinds = Counter(kind_of(spec) for spec in todo)
    example = {kind_of(spec): spec for spec in reversed(todo)}
    per_step: dict[Kind, float] = {}
    started = time.perf_counter()
    for kind, _ in kinds.most_common():
        if per_step and time.perf_counter() - started > budget:
            break
        per_step[kind] = probe(example[kind], data_root, device)
    total = 0.0
    for spec in todo:
        kind = kind_of(spec)
        similar = [s for k, s in per_step.items() if k.model == kind.model] or list(
            per_step.values()
        )
        total += run_seconds(spec, per_step.get(kind, mean(similar)), data_root)
    return Estimate(total, len(todo), len(per_step), len(kinds))


def run_seconds(spec: Spec, per_step: float, data_root: str | None) -> float:
    """The time of one run: its steps, a look at the validation part after each epoch, the test set.

    A method that searches takes a training run for each candidate; a teacher adds a forward pass.
    """
    from tstar.methods.searching import runs_of
    from tstar.training.loop import length
    from tstar.training.timing import FORWARD

    data, config = load_data(DataKey.of(spec), data_root), spec.config
    samples = len(data.y_train)
    held_out = round(samples * config.val_fraction)
    steps, epochs = length(samples - held_out, config)
    tests = (epochs if config.test_curve else 1) * len(data.y_test)
    forward = per_step * FORWARD / config.batch_size
    method = get_method(spec)
    step = per_step * (1 + FORWARD * ("teacher" in method.needs))
    one = steps * step + ((epochs + 1) * held_out + tests) * forward
    return one * runs_of(method)


def probe(spec: Spec, data_root: str | None, device: str = "cpu") -> float:
    """Seconds per training step of this run on the device, or on one thread of this machine."""
    import torch

    from tstar.training.parts import make_parts
    from tstar.training.timing import step_seconds

    data = inputs_for(spec, load_data(DataKey.of(spec), data_root), data_root)
    model = build_model(replace(spec, weights=None, scenario="scratch"), data, data_root)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker does; restored below
    try:
        config = replace(spec.config, device=device)
        return step_seconds(model, make_parts(data, config, spec.seed), config)
    finally:
        torch.set_num_threads(threads)
