"""One run, from its description to its row: the same code on every engine."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tstar import own
from tstar.errors import TstarError, require
from tstar.sweep.columns import SCORES, own_scores
from tstar.sweep.provenance import versions
from tstar.sweep.shared import checksum
from tstar.sweep.spec import Places, Spec, check_below_root

if TYPE_CHECKING:
    from torch import nn

    from tstar.data import DataSet
    from tstar.methods.interface import Method
    from tstar.training.running import Trained

_RESULTS = (*SCORES, "epochs", "steps", "seconds", "images_per_second")


@dataclass(frozen=True)
class Job:
    """A run and what it needs that is not part of its identity.

    ``places`` tells where the parts of your own are, ``shared`` the folder of data that workers share,
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
    """How a run ended: its status, the columns to write, and a teacher's weights.

    ``lost`` says that the worker died: nothing is known of the run, and it may be tried again.
    """

    key: str
    status: str
    values: dict[str, Any]
    weights: bytes | None = field(default=None, repr=False)
    lost: bool = False


def execute(job: Job, dataset: DataSet | None = None) -> Outcome:
    """Do a run. Any exception becomes a failed run with its text; the process goes on."""
    try:
        spec = job.spec.resolved(job.places)
        data = dataset or load_data(DataKey.of(spec), job.data_root, job.shared)
        if dataset is None and spec.data_checksum not in (None, checksum(data)):
            raise TstarError(
                f"The data of {job.spec.dataset!r} have changed since the sweep was started: their checksum "
                "differs; start the sweep again."
            )
        if spec.source != source_of(job):
            raise TstarError(
                "The source of a part of your own has changed since the sweep was started; start it again."
            )
        return _execute(job, spec, inputs_for(spec, data, job.data_root))
    except Exception as error:
        text = str(error) if isinstance(error, TstarError) else _explained(job, error)
        return Outcome(job.spec.key, "failed", {"error": text, "versions": versions(job.device)})


def _explained(job: Job, error: Exception) -> str:
    """The traceback; its last line names the network where that is yours and raised it (other parts do so themselves)."""
    model = job.spec.resolved(job.places).model
    if own.is_reference(model) and own.raised_in(model, error):
        return f"{traceback.format_exc()}{own.failed(model, 'failed', error)}"
    return traceback.format_exc()


def source_of(job: Job) -> str | None:
    """The fingerprint of the run's own parts as they are now."""
    if job.spec.source is None:
        return None
    from tstar.sweep.study import Parts

    return Parts(Path(), job.places).source(job.spec.to_dict())


def _execute(job: Job, spec: Spec, data: DataSet) -> Outcome:
    import io

    import torch

    from tstar.training.checkpoint import Checkpoint
    from tstar.training.running import run

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
    result = trained.result
    values = describe(job.spec, data, trained) | {name: getattr(result, name) for name in _RESULTS}
    values |= {
        "csg": job.csg,
        "curves": dict(result.curves),
        "extra": dict(result.extra) | _measured(trained.model),
        "trainings": trained.trainings + (job.teacher is not None),
        "versions": versions(job.device),
    }
    if spec.config.metric is not None:
        values |= own_scores(result.extra)
    weights = None
    if spec.role == "teacher" and result.status == "done":
        buffer = io.BytesIO()
        torch.save(trained.model.state_dict(), buffer)
        weights = buffer.getvalue()
    return Outcome(job.spec.key, result.status, values, weights)


def _measured(model: nn.Module) -> dict[str, float]:
    """What was measured on the untrained model: the factor that matches the backbone's speed."""
    from tstar.surgery.finding import tempered_heads

    heads = [head for head in tempered_heads(model).values() if head.backbone is not None]
    return {"backbone_factor": float(heads[0].backbone)} if heads else {}  # type: ignore[arg-type]


def describe(spec: Spec, data: DataSet, trained: Trained) -> dict[str, Any]:
    """The columns that only the model and the data can tell: K, M, and T and norm as trained."""
    facts = trained.facts
    temperature, norm = trained.head or (None, False)
    plain = spec.method in ("default", "label-smoothing")
    return {
        # The data set's, however the model takes it; csg and checksum are of its vectors too.
        "domain": "text" if data.domain == "tokens" else data.domain,
        "num_train": len(data.y_train),
        "num_classes": facts.num_classes,
        "num_features": facts.num_features,
        # Exactly as asked: the buffer is in single precision.
        "temperature": spec.temperature or (1.0 if plain else temperature),
        "norm": spec.norm or ("batch" if norm else "none"),
        "teacher": spec.teacher().key if facts.teacher is not None else None,
    }


def get_method(spec: Spec) -> Method:
    """The method that a spec names, with its options."""
    from tstar import methods

    if spec.method == "fixed":
        return methods.get(
            "fixed", temperature=spec.temperature, norm=spec.norm, backbone=spec.backbone
        )
    return methods.get(spec.method, **json.loads(spec.options))


def build_model(spec: Spec, data: DataSet, root: str | None) -> nn.Module:
    """The model of a spec, initialized from its seed or from the weights that it names."""
    from tstar.models.fitting import fitting_model

    pretrained = spec.weights == "default"
    name = f"transformers/{source}" if (source := model_source(spec.model, root)) else spec.model
    model = fitting_model(
        name,
        data,
        spec.num_features,
        spec.seed,
        pretrained=pretrained,
        trunk_features=spec.trunk_features,
        depth=spec.depth,
    )
    if spec.weights not in (None, "default"):
        load_weights(model, _root(root) / str(spec.weights))
    return model


def load_weights(model: nn.Module, path: Path) -> None:
    """Put a state dict into a model; the output layer may be missing or of another shape."""
    import torch

    from tstar.data.limits import parsing

    own = model.state_dict()
    with parsing(path, "the weights of a model"):
        if path.suffix == ".safetensors":
            state = require("safetensors.torch", "transformers").load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        fitting = {n: v for n, v in state.items() if n in own and own[n].shape == v.shape}
    missing = [n for n in own if n not in fitting]
    if len(fitting) < len(own) / 2:
        raise TstarError(
            f"The weights {str(path)!r} must fit the model, but {len(missing)} of {len(own)} tensors "
            f"are missing or of another shape, such as {missing[0]!r}."
        )
    model.load_state_dict(fitting, strict=False)


def make_example(data: DataSet) -> Any:
    """Two samples as a model sees them, to find its output layer with."""
    first = data.x_train[:2]
    return first if data.domain == "tokens" else first.float()


def _teacher(job: Job, run: Spec, data: DataSet) -> nn.Module:
    """The trained teacher of a run that has one."""
    assert job.teacher is not None
    import io

    import torch

    from tstar.methods.interface import Facts
    from tstar.surgery.finding import find_head

    spec = run.teacher()
    model = build_model(spec, data, job.data_root)
    head = find_head(model, make_example(data))
    facts = Facts(head.num_features, data.num_classes, head=head.path)
    teacher = get_method(spec).prepare(model, facts).model
    teacher.load_state_dict(torch.load(io.BytesIO(job.teacher), weights_only=True))
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
    """A data set by name or path below the root, and what is drawn from it; the last two stay in memory.

    Where ``folder`` has the set, its arrays are mapped from there and shared with other workers.
    """
    from tstar import data
    from tstar.sweep import shared

    if key.classes is None and key.train_samples is None and not key.label_noise:
        if folder and shared.is_shared(place := shared.place(folder, key.dataset, key.size)):
            return shared.load(place)
        if shared.is_shared(key.dataset):
            return shared.load(key.dataset)
        for one in key.dataset.split("+"):
            if not own.is_reference(one):
                check_below_root("dataset", one)
        return data.load(key.dataset, root=root, size=key.size)
    whole = load_data(DataKey(key.dataset, key.size), root, folder)
    return draw(whole, key.classes, key.train_samples, key.label_noise, key.data_seed)


def draw(
    data: DataSet, classes: int | None, samples: int | None, noise: float, seed: int
) -> DataSet:
    """A smaller or noisier task from a data set: fewer classes, fewer training samples, wrong labels.

    A wrong label is drawn evenly from the other classes; the test part keeps the true ones.
    """
    import numpy as np
    import torch

    random = np.random.default_rng(seed)
    if classes is not None:
        if not 2 <= classes <= data.num_classes:
            raise TstarError(
                f"classes must be between 2 and {data.num_classes}, those of {data.name!r}; got {classes}."
            )
        kept = sorted(random.permutation(data.num_classes)[:classes].tolist())
        names = [data.classes[i] for i in kept]
        data = data.regroup([[i] for i in kept], names, data.name)
    if samples is not None and samples < len(data.y_train):
        data = data.subset(train=samples, seed=seed)
    if noise:
        wrong = random.random(len(data.y_train)) < noise
        shift = random.integers(1, data.num_classes, len(data.y_train))
        labels = (data.y_train.numpy() + np.where(wrong, shift, 0)) % data.num_classes
        data = replace(data, y_train=torch.from_numpy(labels))
    return data


def inputs_for(spec: Spec, data: DataSet, root: str | None) -> DataSet:
    """The data as the spec's model takes them: texts as token ids for a transformer, else unchanged."""
    source = model_source(spec.model, root)
    return data if source is None or data.domain != "text" else _tokenized(data, source)


@lru_cache(maxsize=2)
def _tokenized(data: DataSet, source: str) -> DataSet:
    from tstar.data import tokenize

    return tokenize(data, source)


def model_source(model: str, root: str | None) -> str | None:
    """Where a transformer comes from: a folder below the data root, else a name of the hub.

    ``None`` for the models of other libraries.
    """
    library, _, name = model.partition("/")
    if library != "transformers" or not name:
        return None
    check_below_root("model", name)
    folder = _root(root) / name
    return str(folder) if folder.is_dir() else name


def _root(root: str | None) -> Path:
    from tstar.data.loading import default_root

    return Path(root).expanduser() if root else default_root()
