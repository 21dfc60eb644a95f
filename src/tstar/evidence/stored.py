"""The two atlases that ship with the package: one row per training run."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from tstar.errors import require
from tstar.numbers import whole

if TYPE_CHECKING:
    import pandas as pd

FILE = "atlas.parquet"
SECOND = "atlas2.parquet"
# What an analysis needs; curves, claims and versions stay in the store that the atlas came from.
COLUMNS = (
    *("dataset", "domain", "size", "num_train", "num_classes", "csg", "model", "num_features"),
    *("norm", "backbone", "method", "temperature", "optimizer", "lr", "momentum", "weight_decay"),
    *("schedule", "epochs", "steps", "batch_size", "label_smoothing", "val_fraction", "scenario"),
    *("weights", "trunk_features", "depth", "classes", "train_samples", "label_noise"),
    *("data_seed", "augment"),
    *("seed", "val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "nll", "ece"),
    *("seconds", "status", "commit", "key"),
)


def atlas(which: int | None = None) -> pd.DataFrame:
    """Every run of the atlases: data set, model, way of training, temperature, and what came of it.

    Args:
        which: 1 or 2 for one of them; both by default, told apart by the column ``atlas``.

    The first is a grid over temperatures (``studies/atlas*.toml``), the second a random design that starts from the user's own
    model (``results/atlas2``). Accuracies are fractions of the last epoch. ``csg`` is of the training images, signals or text
    vectors, where it was measured; ``temperature`` is missing for methods that learn or schedule theirs.

    >>> runs = atlas()
    >>> core = runs[(runs.method == "fixed") & (runs.norm == "batch")]
    """
    pandas = require("pandas", "sweep")
    require("pyarrow", "sweep")
    if which is not None:
        which = whole("which", which, least=1, most=2)
    parts = []
    for number, file in ((1, FILE), (2, SECOND)):
        if which in (None, number):
            with as_file(files("tstar.evidence") / file) as path:
                parts.append(pandas.read_parquet(path).assign(atlas=number))
    frame: pd.DataFrame = parts[0] if len(parts) == 1 else pandas.concat(parts, ignore_index=True)
    return frame
