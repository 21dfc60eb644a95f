"""A dry run: what a sweep would do and cost, from a short probe of each kind of run.

Missing data are listed with where they go; random images of the catalogued shape stand in for them.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import mean

import torch

from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.data.catalogue import CATALOGUE
from tstar.lab.data.cifar100 import AT_TEN, suffix_of
from tstar.lab.sweep.materials import DataKey, build_model, get_method, inputs_for, load_data
from tstar.lab.sweep.plan import Todo, make_plan
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import Study
from tstar.lab.training.loop import length
from tstar.lab.training.parts import make_parts
from tstar.lab.training.running import FORWARD, step_seconds

_BATCH = 8  # samples of a first probe; if its steps are slow, larger ones count in proportion
_SLOW = 0.05  # seconds


def kind_of(spec: Spec) -> tuple[object, ...]:
    """What the time of a training step depends on, the model first."""
    return spec.model, spec.dataset, spec.size, spec.num_features, spec.batch_size


def shape_of(name: str) -> tuple[int, int, int, int] | None:
    """Classes, pixels, training and test samples of a catalogued set that must be fetched."""
    suffix = suffix_of(name)
    entry = CATALOGUE.get(name.removesuffix(suffix))
    if entry is None or entry.shape is None:
        return None
    pixels, train, test = entry.shape
    if not suffix:
        return entry.num_classes, pixels, train, test
    share = 2 if suffix == AT_TEN else 10  # of CIFAR-100
    return 10, pixels, train // share, test // share


@dataclass
class DryRun:
    """What is to be done, and which data are missing: name → where they go.

    ``seconds`` is the time of one worker; ``probed`` of ``kinds`` kinds of run were timed.
    """

    data_root: str | None
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    probed: int = 0
    kinds: int = 0
    plan: Todo = field(init=False)
    _sizes: dict[DataKey, tuple[int, int]] = field(default_factory=dict)

    def read(self, key: DataKey) -> DataSet:
        """The data, or what stands in for them; their true numbers of samples are noted."""
        try:
            data = load_data(key, self.data_root)
            self._sizes[key] = len(data.y_train), len(data.y_test)
            return data
        except TstarError as error:
            shape = shape_of(key.dataset)
            if shape is None:
                raise
            self.missing[key.dataset] = str(error)
        classes, pixels, train, test = shape
        self._sizes[key] = min(key.samples or train, train), test
        classes, size = key.classes or classes, key.size or pixels
        labels = torch.arange(max(256, 2 * classes)) % classes
        random, shape = torch.Generator().manual_seed(0), (len(labels), 3, size, size)
        x = torch.randint(0, 256, shape, generator=random, dtype=torch.uint8)
        names = tuple(map(str, range(classes)))
        return DataSet(key.dataset, "image", x, labels, x, labels, names)

    def run_seconds(self, spec: Spec, per_step: float) -> float:
        """The time of one run: its steps, the validation part after each epoch, the test set."""
        config, (samples, tested) = spec, self._sizes[DataKey.of(spec)]
        held_out = round(samples * config.val_fraction)
        steps, epochs = length(samples - held_out, config)
        tests = (epochs if config.test_curve else 1) * tested
        forward = per_step * FORWARD / config.batch_size
        method = get_method(spec)
        step = per_step * (1 + FORWARD * ("teacher" in method.needs))
        one = steps * step + ((epochs + 1) * held_out + tests) * forward
        return one * method.trainings

    def probe(self, spec: Spec, device: str) -> float:
        """Seconds per training step of this run, on one thread as a worker has it."""
        data = inputs_for(spec, self.read(DataKey.of(spec)), self.data_root)
        scratch = replace(spec, weights=None, scenario="scratch")
        model = build_model(scratch, data, self.data_root)
        config = replace(spec, device=device)
        few = replace(config, batch_size=min(_BATCH, config.batch_size))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            parts = make_parts(data, config, spec.seed)
            seconds = step_seconds(model, parts, few)
            if seconds > _SLOW:
                return seconds * config.batch_size / few.batch_size
            return step_seconds(model, parts, config)
        finally:
            torch.set_num_threads(threads)


def dry_run(
    study: Study,
    store: Store | None,
    *,
    data_root: str | None = None,
    budget: float = 20.0,
    device: str = "cpu",
) -> DryRun:
    """Check everything that a sweep would, and time a few steps of each kind of missing run.

    After ``budget`` seconds rarer kinds count as the mean of those with the same model (or of all).
    """
    found = DryRun(data_root)
    found.plan = make_plan(study, store, data_root=data_root, read=found.read)
    todo = [spec.resolved(study.places) for spec in found.plan.todo]
    kinds = Counter(map(kind_of, todo))
    example = {kind_of(spec): spec for spec in reversed(todo)}
    per_step: dict[tuple[object, ...], float] = {}
    started = time.perf_counter()
    for kind, _ in kinds.most_common():
        if per_step and time.perf_counter() - started > budget:
            break
        per_step[kind] = found.probe(example[kind], device)
    for spec in todo:
        kind = kind_of(spec)
        similar = [s for k, s in per_step.items() if k[0] == kind[0]] or [*per_step.values()]
        found.seconds += found.run_seconds(spec, per_step.get(kind) or mean(similar))
    found.probed, found.kinds = len(per_step), len(kinds)
    return found
