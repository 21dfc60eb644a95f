"""The atlases of training temperature that ship with the package: one row per training run."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from tstar.imports import require

if TYPE_CHECKING:
    import pandas as pd

FILES = {
    1: "atlas.parquet",
    2: "atlas2.parquet",
    3: "standard.parquet",
    4: "rivals.parquet",
    5: "unseen.parquet",
}


def atlas() -> pd.DataFrame:
    """Every run of the atlases: data set, model, way of training, temperature, and what came of it.

    The column ``atlas`` tells its sources apart: 1 is a grid over temperatures
    (``studies/atlas*.toml``), 2 a random design that starts from the user's own model
    (``results/atlas2``), 3 trainings as people run them (``results/standard``), 4 what a user would
    pick instead (``results/rivals``), 5 trainings whose advice was written down first
    (``results/unseen``). ``csg`` is of the training data, if it was measured; ``temperature`` is
    missing for methods that learn or schedule theirs.

    >>> runs = atlas()
    >>> first = runs[(runs["atlas"] == 1) & (runs["method"] == "fixed") & (runs["norm"] == "batch")]
    >>> len(first)
    1737
    """
    pandas = require("pandas", "lab")
    require("pyarrow", "lab")
    parts = []
    for number, name in FILES.items():
        with as_file(files(__name__) / name) as path:
            parts.append(pandas.read_parquet(path).assign(atlas=number))
    frame: pd.DataFrame = pandas.concat(parts, ignore_index=True)
    return frame
