"""What a spec names, as objects: its data, its model and its method."""

from __future__ import annotations

import json
from dataclasses import replace
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
from tstar.lab.models import fitting_model, paper_init
from tstar.lab.recipe import Method
from tstar.lab.sweep import shared
from tstar.lab.sweep.spec import Spec, check_below_root


# -- data ------------------------------------------------------------------------------------------
class DataKey(NamedTuple):
    """What a run's data depend on: which set, at which size, and what is drawn from it."""

    dataset: str
    size: int | None = None
    classes: int | None = None
    samples: int | None = None
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
    if key.classes is not None or key.samples is not None or key.label_noise:
        whole = load_data(DataKey(key.dataset, key.size), root, folder)
        return draw(whole, key.classes, key.samples, key.label_noise, key.data_seed)
    place = shared.place(folder, key.dataset, key.size) if folder else None
    if place is not None and place.exists():
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
        random = np.random.default_rng((seed, 1))  # not the numbers that choose the held-out part
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
    folder = data_sets.default_root(root) / name
    return str(folder) if folder.is_dir() else name


# -- model and method ------------------------------------------------------------------------------
def build_model(spec: Spec, data: DataSet, root: str | None) -> nn.Module:
    """The model of a spec, initialized from its seed or from the weights that it names."""
    name = f"transformers/{source}" if (source := model_source(spec.model, root)) else spec.model
    options = {"trunk_features": spec.trunk_features, "depth": spec.depth}
    options["pretrained"] = spec.weights == "default"
    model = fitting_model(name, data, spec.num_features, spec.seed, **options)
    if spec.head_init == "paper":
        paper_init(model, make_example(data), spec.seed)
    if spec.weights not in (None, "default"):
        load_weights(model, data_sets.default_root(root) / str(spec.weights))
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


def get_method(spec: Spec) -> Method:
    """The method that a spec names, with its options."""
    options = json.loads(spec.options)
    if spec.method == "fixed":
        options = {"temperature": spec.temperature, "norm": spec.norm}
    return methods.get(spec.method, **options)
