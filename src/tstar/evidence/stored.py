"""The atlas that ships with the package: one row per training run."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from tstar.errors import require

if TYPE_CHECKING:
    import pandas as pd

FILE = "atlas.parquet"
# What an analysis needs; curves, claims and versions stay in the store that the atlas came from.
COLUMNS = (
    *("dataset", "domain", "size", "num_train", "num_classes", "csg", "model", "num_features"),
    *("norm", "backbone", "method", "temperature", "optimizer", "lr", "momentum", "weight_decay"),
    *("schedule", "epochs", "steps", "batch_size", "label_smoothing", "val_fraction", "scenario"),
    *("weights", "trunk_features", "depth", "classes", "train_samples", "label_noise", "data_seed"),
    *("seed", "val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "nll", "ece"),
    *("seconds", "status", "commit", "key"),
)


def atlas() -> pd.DataFrame:
    """Every run of the atlas: data set, model, way of training, temperature, and what came of it.

    Accuracies are fractions of the last epoch. ``csg`` is of the training images, signals or text
    vectors; ``temperature`` is missing for methods that learn or schedule theirs. Made by
    ``studies/atlas*.toml``; ``results/README.md`` says what it shows.

    >>> runs = atlas()
    >>> core = runs[(runs.method == "fixed") & (runs.norm == "batch")]
    """
    pandas = require("pandas", "sweep")
    require("pyarrow", "sweep")
    with as_file(files("tstar.evidence") / FILE) as path:
        frame: pd.DataFrame = pandas.read_parquet(path)
    return frame
