"""One run, from its description to its row: the same code on every engine."""

from __future__ import annotations

import io
import json
import socket
import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tstar.errors import TstarError, guarded
from tstar.lab import own
from tstar.lab.data import DataSet
from tstar.lab.recipe import Setting
from tstar.lab.sweep.materials import (
    DataKey,
    build_model,
    get_method,
    inputs_for,
    load_data,
    make_example,
)
from tstar.lab.sweep.provenance import versions
from tstar.lab.sweep.spec import SCORES, Places, Spec, own_scores
from tstar.lab.sweep.study import Sources
from tstar.lab.training.loop import Checkpoint
from tstar.lab.training.running import run
from tstar.output_layer import find_head

_RESULTS = (*SCORES, "epochs", "steps", "seconds", "images_per_second")


@dataclass(frozen=True)
class Job:
    """A run and what it needs that is not part of its identity.

    ``teacher`` has the weights of the run ``teacher_key``. ``places`` are those of your own parts,
    ``shared`` is the folder of data that workers share, ``checkpoint`` the file and minutes of a run
    that can be continued.
    """

    spec: Spec
    data_root: str | None = None
    csg: float | None = None
    teacher: bytes | None = field(default=None, repr=False)
    device: str = "cpu"
    places: Places = field(default_factory=dict)
    shared: str | None = None
    checkpoint: tuple[str, float] | None = None
    teacher_key: str | None = None


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
        if dataset is None and spec.data_checksum not in (None, data.checksum()):
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
        replace(spec, device=job.device),
        num_classes=data.num_classes,
        seed=spec.seed,
        csg=job.csg,
        teacher=None if job.teacher is None else lambda: _teacher(job, spec, data),
        checkpoint=None if job.checkpoint is None else Checkpoint(*job.checkpoint),
    )
    result, setting = trained.result, trained.setting
    temperature, norm = trained.head or (None, False)
    plain = spec.method in ("default", "label-smoothing")
    values = {name: getattr(result, name) for name in _RESULTS} | {
        # What only the model and the data can tell: K, M, and T and norm as trained.
        "domain": "text" if data.domain == "tokens" else data.domain,
        "samples": len(data.y_train),
        "num_classes": setting.num_classes,
        "num_features": setting.num_features,
        # Exactly as asked: the buffer is in single precision.
        "temperature": spec.temperature or (1.0 if plain else temperature),
        "norm": spec.norm or ("batch" if norm else "none"),
        "teacher": job.teacher_key,
        "csg": job.csg,
        "curves": dict(result.curves),
        "extra": dict(result.extra),
        "trainings": trained.trainings + (job.teacher is not None),
    }
    with guarded(
        f"What the method {spec.method!r} records must be numbers, text and lists of them"
    ):
        json.dumps(values["extra"])
    if spec.metric is not None:
        values |= own_scores(result.extra)
    if spec.role != "teacher" or result.status != "done":
        return Outcome(job.spec.key, result.status, values)
    buffer = io.BytesIO()
    torch.save(trained.model.state_dict(), buffer)
    return Outcome(job.spec.key, result.status, values, buffer.getvalue())


def _teacher(job: Job, run: Spec, data: DataSet) -> nn.Module:
    """The trained teacher of a run that has one."""
    spec = run.teacher()
    model = build_model(spec, data, job.data_root)
    head = find_head(model, make_example(data))
    setting = Setting(head.num_features, data.num_classes, head=head)
    teacher = get_method(spec).prepare(model, setting).model
    teacher.load_state_dict(torch.load(io.BytesIO(job.teacher or b""), weights_only=True))
    return teacher.to(job.device)
