"""Which tables the paper has: where each one stands, its printed words, and how its columns are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tstar.errors import unknown

METHODS = {
    "T=1": "plain, T = 1",
    "T=sqrt(M)": "T = √M",
    "Insert LN": "Insert LN",
    "base": "Hasegawa & Sakai T*",
    "csg": "Hasegawa & Sakai T*_csg",
    "cn": "Hasegawa & Sakai T*_cn",
    "csgcn": "Hasegawa & Sakai T*_csgcn",
}


@dataclass(frozen=True)
class Spec:
    """One table.

    Attributes:
        name: what :func:`tstar.paper.table` calls it.
        label: its label in the paper's source; empty for the tables that hold what is printed
            elsewhere (headers, footnotes) or is ours.
        caption: what it shows.
        keys: the columns that name a row; the first of two is the printed block.
        values: the columns of cells, without the average.
        average: the column of printed averages, if there is one.
        marked: whether best and second best are marked, column by column within a block.
    """

    name: str
    label: str
    caption: str
    keys: tuple[str, ...]
    values: tuple[str, ...]
    average: str | None = None
    marked: bool = False

    @property
    def block(self) -> str | None:
        """The column whose value heads a printed block of rows."""
        return self.keys[0] if len(self.keys) == 2 and self.marked else None


_SPECS = (
    Spec(
        "characteristics",
        "characteristics",
        "Characteristics of the method compared with related works",
        ("method",),
        ("task", "tuning", "considers_features", "closed_form"),
    ),
    Spec(
        "environments",
        "estimated",
        "Coefficients estimated for each environment, without and with BN, and their accuracy [%]",
        ("dataset", "model"),
        ("alpha", "beta", "accuracy", "alpha_bn", "beta_bn", "accuracy_bn", "gain"),
    ),
    Spec(
        "corrections",
        "csgcorr",
        "Interpolated test accuracy [%], mean over all M: cross-validated (CO), global (GO)",
        ("correction", "optimization"),
        ("CIFAR100-1.53", "CIFAR100-1.73", "CIFAR100-6.66", "CIFAR100-7.38", "CIFAR100", "TinyIN"),
        average="avg",
    ),
    Spec(
        "coefficients",
        "coeff",
        "Temperature determination coefficients by global optimization",
        ("variant",),
        ("alpha", "beta", "gamma", "delta"),
    ),
    Spec(
        "models",
        "actualmodels",
        "torchvision models from scratch, measured accuracy [%]",
        ("dataset", "method"),
        ("ResNet50", "EffNet-b0", "EffNet-b5", "RegNet-8GF", "ConvNeXt-S"),
        average="avg",
        marked=True,
    ),
    Spec(
        "transformers",
        "actualtransformer",
        "Transformers from scratch on Caltech101, measured accuracy [%]",
        ("method",),
        ("ViT-B/16", "SwinT"),
        marked=True,
    ),
    Spec(
        "datasets",
        "actualdata",
        "Three scenarios on eight data sets, measured accuracy [%]",
        ("scenario", "method"),
        ("GTS", "SAT", "ISIC", "CT", "FLW", "PET", "DTD", "CUB"),
        average="avg",
        marked=True,
    ),
    Spec(
        "smoothing",
        "actualsmoothing",
        "ResNet50 trained with label smoothing, measured accuracy [%]",
        ("scenario", "method"),
        ("GTS", "CT", "FLW", "PET", "DTD"),
        average="avg",
        marked=True,
    ),
    Spec(
        "footnotes",
        "",
        "The two footnotes of the table of transformers",
        ("table", "method", "column"),
        ("value", "lr", "text"),
    ),
    Spec(
        "tasks",
        "",
        "csg and number of classes of each data set; csg_source says where csg is ours",
        ("dataset",),
        ("name", "csg", "num_classes", "csg_source"),
    ),
    Spec(
        "widths",
        "",
        "M of each standard model; source says where the choice is ours",
        ("model",),
        ("name", "num_features", "source"),
    ),
)
SPECS = {spec.name: spec for spec in _SPECS}


def spec(name: str) -> Spec:
    """The description of the table of that name."""
    try:
        return SPECS[name]
    except KeyError:
        raise unknown("table of the paper", name, SPECS) from None


def expected_marks(values: Sequence[float]) -> list[str]:
    """Best and second best of a column, ties sharing a mark; missing values get none.

    >>> expected_marks([98.4, 98.6, 98.4, 98.1])
    ['second', 'best', 'second', '']
    """
    levels = sorted({value for value in values if not math.isnan(value)}, reverse=True)
    names = dict(zip(levels, ("best", "second"), strict=False))
    return [names.get(value, "") for value in values]
