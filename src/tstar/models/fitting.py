"""A network with the inputs and outputs that a data set needs."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import nn

from tstar.models.registry import FLAT, build

if TYPE_CHECKING:
    from tstar.data import DataSet


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

    The MLPs take images and signals as well: they are flattened first.
    """
    flat = name in FLAT and data.x_train.dim() > 2
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
