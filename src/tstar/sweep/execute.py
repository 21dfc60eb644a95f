"""One run, from its description to its row: the same code on every engine."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tstar.errors import TstarError
from tstar.sweep.provenance import versions
from tstar.sweep.spec import Spec, outside_root

if TYPE_CHECKING:
    from torch import nn

    from tstar.data import DataSet
    from tstar.methods.interface import Facts, Method
    from tstar.training import Result


@dataclass(frozen=True)
class Job:
    """A run and what it needs that is not part of its identity."""

    spec: Spec
    data_root: str | None = None
    csg: float | None = None
    teacher: bytes | None = field(default=None, repr=False)
    device: str = "cpu"


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
        data = dataset or load_data(DataKey.of(job.spec), job.data_root)
        if job.spec.data_checksum not in (None, checksum(data)):
            raise TstarError(
                f"The data of {job.spec.dataset!r} must be those that the sweep was started with, but "
                "their checksum differs; start the sweep again."
            )
        return _execute(job, inputs_for(job.spec, data, job.data_root))
    except Exception as error:
        text = str(error) if isinstance(error, TstarError) else traceback.format_exc()
        return Outcome(job.spec.key, "failed", {"error": text, "versions": versions(job.device)})


def _execute(job: Job, data: DataSet) -> Outcome:
    import torch

    from tstar.methods.searching import search, searches

    method = get_method(job.spec)
    trainings = 1 + (job.teacher is not None)
    if searches(method):
        # Each candidate is a training run; the one that is best on validation data is the result.
        runs: list[tuple[Result, dict[str, Any], nn.Module]] = []

        def score(candidate: Method) -> float | None:
            runs.append(_run(job, data, candidate))
            return runs[-1][0].val_accuracy

        found = search(method, score, seed=job.spec.seed)
        result, values, model = runs[found.trials.index(found.best)]
        values["seconds"] = sum(run[0].seconds for run in runs)
        values["extra"] = {"trials": [[trial.temperature, trial.score] for trial in found.trials]}
        trainings = found.runs
    else:
        result, values, model = _run(job, data, method)
    values |= {"trainings": trainings, "versions": versions(job.device)}
    weights = None
    if job.spec.role == "teacher" and result.status == "done":
        import io

        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        weights = buffer.getvalue()
    return Outcome(job.spec.key, result.status, values, weights)


def _run(job: Job, data: DataSet, method: Method) -> tuple[Result, dict[str, Any], nn.Module]:
    """One training run of a method: the result, its columns, and the trained model."""
    import torch

    from tstar.methods.interface import Facts
    from tstar.surgery.finding import find_head
    from tstar.training import train
    from tstar.training.loop import length
    from tstar.training.parts import make_parts

    spec, config = job.spec, replace(job.spec.config, device=job.device)
    # A method's own layers may draw from the global generator: seeded here, restored afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = build_model(spec, data, job.data_root)
        head = find_head(model, make_example(data))
        parts = make_parts(data, config, spec.seed)
        facts = Facts(
            num_features=head.num_features,
            num_classes=data.num_classes,
            csg=job.csg,
            epochs=length(len(parts.y), config)[1],
            label_smoothing=config.label_smoothing,
            teacher=_teacher(job, data),
            validation=parts.validation if "validation" in method.needs else None,
            head=head.path,
            inputs=parts.ready(parts.x[: config.batch_size]),
        )
        recipe = method.prepare(model, facts)
    values = describe(spec, data, facts, recipe.model)
    values["csg"] = job.csg
    result = train(recipe, data, config, seed=spec.seed)
    for name in (
        *(
            "val_accuracy",
            "test_accuracy",
            "train_accuracy",
            "train_loss",
            "val_loss",
            "nll",
            "ece",
        ),
        *("epochs", "steps", "seconds", "images_per_second"),
    ):
        values[name] = getattr(result, name)
    values |= {"curves": dict(result.curves), "extra": dict(result.extra) | _measured(recipe.model)}
    return result, values, recipe.model


def _measured(model: nn.Module) -> dict[str, float]:
    """What was measured on the untrained model: the factor that matches the backbone's speed."""
    from tstar.surgery.finding import tempered_heads

    heads = [head for head in tempered_heads(model).values() if head.backbone is not None]
    return {"backbone_factor": float(heads[0].backbone)} if heads else {}  # type: ignore[arg-type]


def describe(spec: Spec, data: DataSet, facts: Facts, model: nn.Module) -> dict[str, Any]:
    """The columns that only the model and the data can tell: K, M, and T and norm as trained."""
    from tstar.surgery.finding import tempered_heads

    heads = list(tempered_heads(model).values())
    plain = spec.method in ("default", "label-smoothing")
    return {
        # The data set's, however the model takes it; csg and checksum are of its vectors too.
        "domain": "text" if data.domain == "tokens" else data.domain,
        "num_train": len(data.y_train),
        "num_classes": facts.num_classes,
        "num_features": facts.num_features,
        # Exactly as asked: the buffer is in single precision.
        "temperature": spec.temperature
        or (float(heads[0].temperature) if heads else (1.0 if plain else None)),
        "norm": spec.norm or ("batch" if heads and heads[0].norm is not None else "none"),
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
    """The model of a spec, initialised from its seed or from the weights that it names."""
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


def fitting_model(
    name: str,
    data: DataSet,
    num_features: int | None,
    seed: int | None,
    *,
    pretrained: bool = False,
    trunk_features: int | None = None,
    depth: int | None = None,
) -> nn.Module:
    """A model by name, with the inputs and outputs that a data set needs.

    ``mlp`` takes images and signals as well: they are flattened first.
    """
    from collections import OrderedDict

    from torch import nn

    from tstar.models import build

    flat = name == "mlp" and data.x_train.dim() > 2
    model = build(
        name,
        data.num_classes,
        num_features=num_features,
        in_channels=data.x_train[0].numel() if flat else data.in_channels,
        seed=seed,
        pretrained=pretrained,
        trunk_features=trunk_features,
        depth=depth,
    )
    return nn.Sequential(OrderedDict(flatten=nn.Flatten(), mlp=model)) if flat else model


def load_weights(model: nn.Module, path: Path) -> None:
    """Put a state dict into a model; the output layer may be missing or of another shape."""
    import torch

    try:
        if path.suffix == ".safetensors":
            from tstar.errors import require

            state = require("safetensors.torch", "transformers").load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise TstarError(f"The weights {str(path)!r} could not be read: {error}.") from error
    own = model.state_dict()
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


def _teacher(job: Job, data: DataSet) -> nn.Module | None:
    """The trained teacher of a run that has one."""
    if job.teacher is None:
        return None
    import io

    import torch

    from tstar.methods.interface import Facts
    from tstar.surgery.finding import find_head

    spec = job.spec.teacher()
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
def load_data(key: DataKey, root: str | None) -> DataSet:
    """A data set by name or path below the root, and what is drawn from it; the last two stay in memory."""
    if key.classes is None and key.train_samples is None and not key.label_noise:
        from tstar import data

        for one in key.dataset.split("+"):
            _below_root("dataset", one)
        return data.load(key.dataset, root=root, size=key.size)
    whole = load_data(DataKey(key.dataset, key.size), root)
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
    return data if source is None or data.domain != "text" else _tokenised(data, source)


@lru_cache(maxsize=2)
def _tokenised(data: DataSet, source: str) -> DataSet:
    from tstar.data import tokenise

    return tokenise(data, source)


def model_source(model: str, root: str | None) -> str | None:
    """Where a transformer comes from: a folder below the data root, else a name of the hub.

    ``None`` for the models of other libraries.
    """
    library, _, name = model.partition("/")
    if library != "transformers" or not name:
        return None
    _below_root("model", name)
    folder = _root(root) / name
    return str(folder) if folder.is_dir() else name


def _root(root: str | None) -> Path:
    from tstar.data.loading import default_root

    return Path(root).expanduser() if root else default_root()


def _below_root(what: str, name: str) -> None:
    problem = outside_root(what, name)
    if problem:
        raise TstarError(problem)


_checksums: dict[int, tuple[Any, str]] = {}


def checksum(data: DataSet) -> str:
    """The data's checksum, computed once for as long as they stay in memory."""
    known = _checksums.get(id(data))
    if known is None or known[0] is not data:
        _checksums.clear()
        known = _checksums[id(data)] = (data, data.checksum())
    return known[1]
