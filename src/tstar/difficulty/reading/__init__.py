"""Whatever holds labelled samples becomes a matrix: arrays, Datasets, loaders, folders, files."""

from tstar.difficulty.reading.matrix import Matrix
from tstar.difficulty.reading.sources import read

__all__ = ["Matrix", "read"]
