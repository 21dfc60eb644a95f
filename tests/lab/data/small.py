"""A small data set."""

from typing import Any

import torch

from tstar.lab.data import DataSet


def make(**changes: Any) -> DataSet:
    """Four classes, six training and two test images per class; pixels tell the class and the sample."""
    y_train, y_test = torch.arange(4).repeat_interleave(6), torch.arange(4).repeat_interleave(2)
    fields: dict[str, Any] = {
        "name": "toy",
        "domain": "image",
        "x_train": (10 * y_train + torch.arange(24) % 6)
        .view(-1, 1, 1, 1)
        .expand(-1, 3, 2, 2)
        .to(torch.uint8),
        "y_train": y_train,
        "x_test": (10 * y_test).view(-1, 1, 1, 1).expand(-1, 3, 2, 2).to(torch.uint8),
        "y_test": y_test,
        "classes": ("a", "b", "c", "d"),
    }
    return DataSet(**{**fields, **changes})
