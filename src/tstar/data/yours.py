"""A data set from arrays of your own, or from a function of yours that returns them."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from tstar import own
from tstar.data.dataset import DataSet
from tstar.data.files import both_samples, labels
from tstar.errors import TstarError


def from_function(reference: str, root: str | PathLike[str], size: int | None) -> DataSet:
    """What ``f(root, size)`` returns: a ``DataSet``, or its four arrays."""
    function = own.load(reference)
    if size is not None and not own.takes(function, "size"):
        raise TstarError(f"{reference} takes no size; add it, or leave it out of the study.")
    return from_arrays(reference, own.call(reference, function, root=root, size=size))


def from_arrays(name: str, value: Any) -> DataSet:
    """A ``DataSet`` as it is, or x_train, y_train, x_test and y_test.

    NumPy arrays are as in an ``.npz`` file (images N×H×W×C uint8), tensors as torch has them (N×C×H×W).
    """
    if isinstance(value, DataSet):
        return value
    if not (isinstance(value, tuple | list) and len(value) == 4):
        raise TstarError(
            f"{name} must give x_train, y_train, x_test and y_test, or a tstar.data.DataSet, got "
            f"{type(value).__name__}."
        )
    with own.explained(name):
        (x, x_test), domain = both_samples(value[0], value[2], name)
        y, y_test, classes = labels(np.asarray(value[1]), np.asarray(value[3]), None, name)
        return DataSet(name, domain, x, y, x_test, y_test, classes)
