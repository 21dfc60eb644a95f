"""Data sets by name or from your own files, and what is done to them before training."""

from __future__ import annotations

from tstar.lab.data import augment
from tstar.lab.data.augment import Standardizer, standardizer
from tstar.lab.data.dataset import DataSet, split
from tstar.lab.data.door import open_data
from tstar.lab.data.loading import default_root, load, names
from tstar.lab.data.text import tokenize

__all__ = ["DataSet", "Standardizer", "augment", "default_root", "load", "names", "open_data"]
__all__ += ["split", "standardizer", "tokenize"]
