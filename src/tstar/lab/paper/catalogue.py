"""Which tables the paper has (``tables.csv``): their words, and how their columns are read."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tstar.errors import unknown

FOLDER = Path(__file__).parent
METHODS = {
    "T=1": "plain, T = 1",
    "T=sqrt(M)": "T = √M",
    "Insert LN": "Insert LN",
    "base": "Hasegawa & Sakai T*",
    "csg": "Hasegawa & Sakai T*_csg",
    "cn": "Hasegawa & Sakai T*_cn",
    "csgcn": "Hasegawa & Sakai T*_csgcn",
}
# The paper's abbreviations, by the names that data sets have here.
_DATASETS = {
    **{"cifar10": "CIFAR10", "cifar100": "CIFAR100", "tinyimagenet": "TinyIN", "tinyin": "TinyIN"},
    **{"gtsrb": "GTS", "gts": "GTS", "eurosat": "SAT", "isic": "ISIC", "isic2019": "ISIC"},
    **{"caltech101": "CT", "flowers": "FLW", "flowers102": "FLW", "pets": "PET", "pet": "PET"},
    **{"oxfordpets": "PET", "oxfordiiitpet": "PET", "dtd": "DTD"},
    **{"cub": "CUB", "cub200": "CUB", "cub2002011": "CUB"},
}


@cache
def rows_of(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a file as text, the header first."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(map(tuple, csv.reader(file)))


@dataclass(frozen=True)
class Printed:
    """One table.

    Attributes:
        name: what :func:`tstar.lab.paper.table` calls it.
        label: its label in the paper's source; empty for the tables that hold what is printed
            elsewhere (headers, footnotes) or is ours.
        keys: the columns that name a row; the first of two is the printed block.
        marked: whether best and second best are marked, column by column within a block.
        caption: what it shows.
    """

    name: str
    label: str
    keys: tuple[str, ...]
    marked: bool
    caption: str

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of cells, without the average."""
        return tuple(c for c in rows_of(f"cells/{self.name}")[0] if c not in (*self.keys, "avg"))

    @property
    def average(self) -> str | None:
        """The column of printed averages, if there is one."""
        return "avg" if "avg" in rows_of(f"cells/{self.name}")[0] else None

    @property
    def block(self) -> str | None:
        """The column whose value heads a printed block of rows."""
        return self.keys[0] if len(self.keys) == 2 and self.marked else None


SPECS = {
    name: Printed(name, label, tuple(keys.split()), bool(marked), caption)
    for name, label, keys, marked, caption in rows_of("tables")[1:]
}


def spec(name: str) -> Printed:
    """The description of the table of that name."""
    if name not in SPECS:
        raise unknown("table of the paper", name, SPECS)
    return SPECS[name]


def expected_marks(values: Sequence[float]) -> list[str]:
    """Best and second best of a column, ties sharing a mark; missing values get none.

    >>> expected_marks([98.4, 98.6, 98.4, 98.1])
    ['second', 'best', 'second', '']
    """
    levels = sorted({value for value in values if not math.isnan(value)}, reverse=True)
    names = dict(zip(levels, ("best", "second"), strict=False))
    return [names.get(value, "") for value in values]


def dataset_name(name: str) -> str:
    """The paper's abbreviation for a data set; its own name if the paper has none.

    >>> dataset_name("data/flowers102_32.npz"), dataset_name("mine")
    ('FLW', 'mine')
    """
    plain = re.sub(r"[^a-z0-9_]", "", name.lower().rpartition("/")[2].removesuffix(".npz"))
    for candidate in (plain, re.sub(r"_\d+$", "", plain)):
        if (key := candidate.replace("_", "")) in _DATASETS:
            return _DATASETS[key]
    return name
