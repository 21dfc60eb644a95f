"""Data sets by name or from your own files, and what is done to them before training."""

from __future__ import annotations

from tstar.data import augment
from tstar.data.augment import Augment, Standardizer, standardizer
from tstar.data.dataset import DataSet
from tstar.data.joining import join
from tstar.data.loading import default_root, load, names
from tstar.data.splits import split
from tstar.data.tokens import tokenize

__all__ = [
    "Augment",
    "DataSet",
    "Standardizer",
    "augment",
    "default_root",
    "join",
    "load",
    "names",
    "split",
    "standardizer",
    "tokenize",
]
