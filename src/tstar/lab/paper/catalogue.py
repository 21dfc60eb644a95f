"""The paper's tables (``tables.csv``): their words, and their cells as data frames.

A cell keeps its mark in the files: ``**best**``, ``_second_``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tstar.errors import unknown
from tstar.imports import require

if TYPE_CHECKING:
    import pandas as pd

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


def table(name: str) -> pd.DataFrame:
    """A table of the paper, one row per printed row, numbers as printed (accuracies in %).

    >>> float(table("coefficients").set_index("variant").loc["csgcn", "alpha"])
    0.3192
    """
    pd, frame = require("pandas", "lab"), printed(name)
    for column in (c for c in frame.columns if c not in spec(name).keys):
        try:  # a column is numbers if all of it is (blank: missing), else text
            frame[column] = pd.to_numeric(frame[column].replace("", None))
        except (TypeError, ValueError):
            continue
    return frame


def marks(name: str) -> pd.DataFrame:
    """The mark of every cell of a table: ``"best"`` (bold), ``"second"`` (underlined) or none."""
    return _frame(name, 1)


def printed(name: str) -> pd.DataFrame:
    """A table as text, digit for digit as printed, without the marks."""
    return _frame(name, 0)


def _frame(name: str, part: int) -> pd.DataFrame:
    """Text (0) or mark (1) of every cell; keys are text in both."""
    keys = spec(name).keys
    header, *rows = rows_of(f"cells/{name}")
    return require("pandas", "lab").DataFrame(
        [
            [strip(c)[0 if column in keys else part] for column, c in zip(header, row, strict=True)]
            for row in rows
        ],
        columns=list(header),
    )


def strip(cell: str) -> tuple[str, str]:
    """A cell's text and its mark."""
    for sign, mark in (("**", "best"), ("_", "second")):
        if cell.startswith(sign) and cell.endswith(sign) and len(cell) > 2 * len(sign):
            return cell.strip(sign), mark
    return cell, ""


def model_name(name: str) -> str:
    """The paper's name of a standard model; its own name if the paper has none."""
    known = {own: model for model, own, *_ in rows_of("cells/widths")}
    return known.get(name.rpartition("/")[2], name)
