"""Tasks of ten classes made from CIFAR-100: its superclasses at even positions, and subsets by csg.

They are written as a suffix to the name of any data set with CIFAR-100's hundred classes:
``cifar100@10``, ``cifar100-easy1``, or ``cifar100_32@10`` for a file ``cifar100_32.npz``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from tstar.errors import TstarError
from tstar.lab.data.dataset import DataSet

AT_TEN = "@10"
SUBSETS = ("easy1", "easy2", "hard1", "hard2")
SUFFIXES = (AT_TEN, *(f"-{subset}" for subset in SUBSETS))


@cache
def _resource(name: str) -> Any:
    return json.loads(files("tstar.lab.data").joinpath(name).read_text(encoding="utf-8"))


def superclasses() -> dict[str, list[str]]:
    """The five fine classes of each of the twenty superclasses, which are in alphabetical order."""
    found: dict[str, list[str]] = _resource("cifar100.json")["superclasses"]
    return found


def subset_classes(subset: str) -> list[str]:
    """The ten fine classes of ``easy1``, ``easy2``, ``hard1`` or ``hard2``.

    Chosen from 50 training images of each class by ``research/choosing.py`` of the repository;
    ``cifar100_subsets.json`` holds the command, the checksum of those images, and the csg reached.
    On all 500 images of each class csg differs somewhat.
    """
    found: list[str] = _resource("cifar100_subsets.json")["subsets"][subset]["classes"]
    return found


def suffix_of(name: str) -> str:
    """The suffix of ``name`` that asks for one of these tasks, or nothing."""
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def derive(data: DataSet, suffix: str) -> DataSet:
    """The ten-class task that ``suffix`` names, from all of CIFAR-100 with its fine labels.

    CIFAR100@10: superclasses 0, 2, …, 18 as the ten labels, five fine classes merged in each, and
    25,000 of the 50,000 training images. The paper: «superclasses at even positions (10 classes,
    25,000 samples)», «using only even class numbers».
    """
    groups = superclasses()
    if sorted(data.classes) != sorted(name for group in groups.values() for name in group):
        raise TstarError(
            f"{suffix!r} needs a data set with the hundred fine classes of CIFAR-100, but "
            f"{data.name} has {data.num_classes}: {', '.join(data.classes[:3])}, …"
        )
    if suffix == AT_TEN:
        chosen = dict(list(groups.items())[::2])
    else:
        chosen = {one: [one] for one in subset_classes(suffix.removeprefix("-"))}
    labels = [[data.classes.index(one) for one in fine] for fine in chosen.values()]
    return data.regroup(labels, list(chosen), data.name + suffix)
