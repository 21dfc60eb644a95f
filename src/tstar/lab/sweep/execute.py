"""One run, from its description to its row: the same code on every engine."""

from __future__ import annotations

import io
import json
import socket
import time
import traceback
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from tstar.errors import TstarError, guarded
from tstar.lab import data as data_sets
from tstar.lab import methods, own
from tstar.lab.checkpoints import read_tensors
from tstar.lab.data import DataSet
from tstar.lab.methods.interface import Facts, Method
from tstar.lab.models import fitting_model, paper_init
from tstar.lab.sweep import shared
from tstar.lab.sweep.columns import SCORES, own_scores
from tstar.lab.sweep.provenance import versions
from tstar.lab.sweep.shared import checksum
from tstar.lab.sweep.spec import Places, Spec, check_below_root
from tstar.lab.sweep.study import Sources
from tstar.lab.training.loop import Checkpoint
from tstar.lab.training.running import run
from tstar.output_layer import find_head, tempered_heads

_RESULTS = (*SCORES, "epochs", "steps", "seconds", "images_per_second")


@dataclass(frozen=True)
class Job:
    """A run and what it needs that is not part of its identity.

    ``places`` are those of your own parts, ``shared`` is the folder of data that workers share,
    ``checkpoint`` the file and minutes of a run that can be continued.
    """

    spec: Spec
    data_root: str | None = None
    csg: float | None = None
    teacher: bytes | None = field(default=None, repr=False)
    device: str = "cpu"
    places: Places = field(default_factory=dict)
    shared: str | None = None
    checkpoint: tuple[str, float] | None = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended, the columns to write, and a teacher's weights.

    ``status`` is ``"done"``, ``"diverged"`` or ``"failed"``; or ``"requeue"`` for a run that ran
    out of memory or whose worker died: nothing is stored, and it is tried again.
    """

    key: str
    status: str
    values: dict[str, Any]
    weights: bytes | None = field(default=None, repr=False)


def execute(job: Job, dataset: DataSet | None = None) -> Outcome:
    """Do a run. Any exception becomes a failed run with its text; the process goes on."""
    made = {"started": time.time(), "host": socket.gethostname(), "versions": versions(job.device)}
    try:
        spec = job.spec.resolved(job.places)
        data = dataset or load_data(DataKey.of(spec), job.data_root, job.shared)
        changed = "has changed since the sweep was started; start it again."
        if dataset is None and spec.data_checksum not in (None, checksum(data)):
            raise TstarError(f"The checksum of the data of {job.spec.dataset!r} {changed}")
        now = Sources(Path(), job.places).hash(job.spec.to_dict()) if spec.source else None
        if spec.source != now:
            raise TstarError(f"The source of a part of your own {changed}")
        outcome = _execute(job, spec, inputs_for(spec, data, job.data_root))
        return replace(outcome, values=made | outcome.values)
    except Exception as error:
        text = str(error) if isinstance(error, TstarError) else _explained(job, error)
        out_of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
        out_of_memory |= "can't allocate memory" in str(error)  # of the CPU, a RuntimeError
        status = "requeue" if out_of_memory else "failed"
        return Outcome(job.spec.key, status, made | {"error": text})


def _explained(job: Job, error: Exception) -> str:
    """The traceback; its last line names the line, and a network of your own that failed."""
    model, text = job.spec.resolved(job.places).model, traceback.format_exc()
    mine = own.is_reference(model) and model.rpartition(":")[0] in text
    return f"{text}{own.failed(model if mine else 'The run', 'failed', error)}"


def _execute(job: Job, spec: Spec, data: DataSet) -> Outcome:
    trained = run(
        get_method(spec),
        lambda: build_model(spec, data, job.data_root),
        data,
        replace(spec.config, device=job.device),
        num_classes=data.num_classes,
        seed=spec.seed,
        csg=job.csg,
        scenario=spec.scenario,
        teacher=None if job.teacher is None else lambda: _teacher(job, spec, data),
        checkpoint=None if job.checkpoint is None else Checkpoint(*job.checkpoint),
    )
    result, facts = trained.result, trained.facts
    temperature, norm = trained.head or (None, False)
    plain = spec.method in ("default", "label-smoothing")
    values = {name: getattr(result, name) for name in _RESULTS} | {
        # What only the model and the data can tell: K, M, and T and norm as trained.
        "domain": "text" if data.domain == "tokens" else data.domain,
        "num_train": len(data.y_train),
        "num_classes": facts.num_classes,
        "num_features": facts.num_features,
        # Exactly as asked: the buffer is in single precision.
        "temperature": spec.temperature or (1.0 if plain else temperature),
        "norm": spec.norm or ("batch" if norm else "none"),
        "teacher": job.spec.teacher().key if facts.teacher is not None else None,
        "csg": job.csg,
        "curves": dict(result.curves),
        "extra": dict(result.extra),
        "trainings": trained.trainings + (job.teacher is not None),
    }
    for head in tempered_heads(trained.model).values():
        if hasattr(head, "backbone"):  # measured on the untrained model
            values["extra"]["backbone_factor"] = float(head.backbone)  # type: ignore[arg-type]
    if spec.config.metric is not None:
        values |= own_scores(result.extra)
    if spec.role != "teacher" or result.status != "done":
        return Outcome(job.spec.key, result.status, values)
    buffer = io.BytesIO()
    torch.save(trained.model.state_dict(), buffer)
    return Outcome(job.spec.key, result.status, values, buffer.getvalue())


def get_method(spec: Spec) -> Method:
    """The method that a spec names, with its options."""
    options = json.loads(spec.options)
    if spec.method == "fixed":
        options = {name: getattr(spec, name) for name in ("temperature", "norm", "backbone")}
    return methods.get(spec.method, **options)


def build_model(spec: Spec, data: DataSet, root: str | None) -> nn.Module:
    """The model of a spec, initialized from its seed or from the weights that it names."""
    name = f"transformers/{source}" if (source := model_source(spec.model, root)) else spec.model
    options = {"trunk_features": spec.trunk_features, "depth": spec.depth}
    options["pretrained"] = spec.weights == "default"
    model = fitting_model(name, data, spec.num_features, spec.seed, **options)
    if spec.head_init == "paper":
        paper_init(model, make_example(data), spec.seed)
    if spec.weights not in (None, "default"):
        load_weights(model, _root(root) / str(spec.weights))
    return model


def load_weights(model: nn.Module, path: Path) -> None:
    """Put a state dict into a model; the output layer may be missing or of another shape."""
    mine = model.state_dict()
    with guarded(f"{path} must be the weights of a model, but reading it failed"):
        state, _ = read_tensors(path)
        fitting = {n: v for n, v in state.items() if n in mine and mine[n].shape == v.shape}
    if len(fitting) < len(mine) / 2:
        raise TstarError(
            f"The weights {str(path)!r} must fit the model, but {len(mine) - len(fitting)} "
            f"of {len(mine)} tensors are missing or of another shape."
        )
    model.load_state_dict(fitting, strict=False)


def make_example(data: DataSet) -> Any:
    """Two samples as a model sees them, to find its output layer with."""
    first = data.x_train[:2]
    return first if data.domain == "tokens" else first.float()


def _teacher(job: Job, run: Spec, data: DataSet) -> nn.Module:
    """The trained teacher of a run that has one."""
    spec = run.teacher()
    model = build_model(spec, data, job.data_root)
    head = find_head(model, make_example(data))
    facts = Facts(head.num_features, data.num_classes, head=head.path)
    teacher = get_method(spec).prepare(model, facts).model
    teacher.load_state_dict(torch.load(io.BytesIO(job.teacher or b""), weights_only=True))
    return teacher.to(job.device)


class DataKey(NamedTuple):
    """What a run's data depend on: which set, at which size, and what is drawn from it."""

    dataset: str
    size: int | None = None
    classes: int | None = None
    train_samples: int | None = None
    label_noise: float = 0.0
    data_seed: int = 0

    @classmethod
    def of(cls, spec: Spec) -> DataKey:
        return cls(*(getattr(spec, name) for name in cls._fields))


@lru_cache(maxsize=2)
def load_data(key: DataKey, root: str | None, folder: str | None = None) -> DataSet:
    """A data set by name or path below the root, and what is drawn from it; the last two stay.

    If the ``folder`` has the set, its arrays are mapped from there and shared with other workers.
    """
    if key.classes is not None or key.train_samples is not None or key.label_noise:
        whole = load_data(DataKey(key.dataset, key.size), root, folder)
        return draw(whole, key.classes, key.train_samples, key.label_noise, key.data_seed)
    place = shared.place(folder, key.dataset, key.size) if folder else None
    if place is not None and shared.is_shared(place):
        return shared.load(place)
    if not own.is_reference(key.dataset):
        check_below_root("dataset", key.dataset)
    return data_sets.load(key.dataset, root=root, size=key.size)


def draw(
    data: DataSet, classes: int | None, samples: int | None, noise: float, seed: int
) -> DataSet:
    """Fewer classes, fewer training samples, wrong labels, drawn evenly from the other classes.

    The test part keeps the true ones.
    """
    random = np.random.default_rng(seed)
    if classes is not None:
        if not 2 <= classes <= data.num_classes:
            raise TstarError(f"classes must be between 2 and {data.num_classes}, got {classes}.")
        kept = sorted(random.permutation(data.num_classes)[:classes].tolist())
        data = data.regroup([[i] for i in kept], [data.classes[i] for i in kept], data.name)
    if samples is not None and samples < len(data.y_train):
        data = data.subset(train=samples, seed=seed)
    if noise:
        wrong = random.random(len(data.y_train)) < noise
        shift = random.integers(1, data.num_classes, len(data.y_train))
        labels = (data.y_train.numpy() + np.where(wrong, shift, 0)) % data.num_classes
        data = replace(data, y_train=torch.from_numpy(labels))
    return data


def inputs_for(spec: Spec, data: DataSet, root: str | None) -> DataSet:
    """The data as the spec's model takes them: texts as token ids for a transformer."""
    source = model_source(spec.model, root)
    return data if source is None or data.domain != "text" else _tokenized(data, source)


_tokenized = lru_cache(maxsize=2)(data_sets.tokenize)


def model_source(model: str, root: str | None) -> str | None:
    """A transformer's folder below the data root, or its name on the hub; else ``None``."""
    library, _, name = model.partition("/")
    if library != "transformers" or not name:
        return None
    check_below_root("model", name)
    folder = _root(root) / name
    return str(folder) if folder.is_dir() else name


def _root(root: str | None) -> Path:
    return Path(root).expanduser() if root else data_sets.default_root()
