"""The measured tables as one frame, one row per cell, with the temperature that each cell was trained at."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from tstar.formula import VARIANTS, temperature
from tstar.imports import require
from tstar.lab.paper.catalogue import marks, spec, table

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("models", "transformers", "datasets", "smoothing")
# Model and scenario of each printed block.
BLOCKS = {
    "ResNet50 init": ("ResNet50", "scratch"),
    "ResNet50 FT": ("ResNet50", "finetune"),
    "SwinT FT": ("SwinT", "finetune"),
    "Scratch": ("ResNet50", "scratch"),
    "Transfer": ("ResNet50", "finetune"),
}


def records() -> pd.DataFrame:
    """Every measured cell of the paper's four tables of accuracies, one row each.

    Columns: table, block (as printed), model, dataset, scenario (``scratch`` or ``finetune``),
    label_smoothing, method, accuracy [%], mark, num_features, num_classes, csg, temperature
    and assumed.

    ``temperature`` is what the method trained at: 1, sqrt(M), or T* of the variant by
    :func:`tstar.temperature`; missing for Insert LN, which sets none. ``assumed`` names each input
    of T* that the paper does not print (CIFAR-10's csg; which RegNet 8GF): there the temperature
    is ours.
    """
    pd = require("pandas", "lab")
    return pd.DataFrame([row for name in MEASURED for row in _rows(name)])


@cache
def _rows(name: str) -> tuple[dict[str, object], ...]:
    kind = spec(name)
    tasks, widths = table("tasks").set_index("dataset"), table("widths").set_index("model")
    printed_marks = marks(name)
    rows = []
    for index, line in table(name).iterrows():
        for column in kind.values:
            block, model, dataset, scenario = _place(name, line, column)
            task, width = tasks.loc[dataset], widths.loc[model]
            facts = {
                "num_features": int(width["num_features"]),
                "num_classes": int(task["num_classes"]),
                "csg": float(task["csg"]),
            }
            rows.append(
                {
                    "table": name,
                    "block": block,
                    "model": model,
                    "dataset": dataset,
                    "scenario": scenario,
                    "label_smoothing": name == "smoothing",
                    "method": line["method"],
                    "accuracy": float(line[column]),
                    "mark": printed_marks.loc[index, column],
                    **facts,
                    "temperature": _temperature(line["method"], facts),
                    "assumed": _assumed(
                        line["method"], str(task["csg_source"]), str(width["source"])
                    ),
                }
            )
    return tuple(rows)


def _place(name: str, line: pd.Series, column: str) -> tuple[str, str, str, str]:
    """Block, model, data set and scenario of a cell: each table lays them out in its own way."""
    if name == "models":
        return line["dataset"], column, line["dataset"], "scratch"
    if name == "transformers":
        return "CT", column, "CT", "scratch"
    model, scenario = BLOCKS[line["scenario"]]
    return line["scenario"], model, column, scenario


def _temperature(method: str, facts: dict[str, float]) -> float:
    if method == "T=1":
        return 1.0
    if method == "T=sqrt(M)":
        return math.sqrt(facts["num_features"])
    if method not in VARIANTS:
        return math.nan
    return temperature(
        int(facts["num_features"]), int(facts["num_classes"]), facts["csg"], variant=method
    )


def _assumed(method: str, csg_source: str, width_source: str) -> str:
    """Which inputs of this method's temperature are ours, not the paper's."""
    uses_csg, uses_width = "csg" in method, method in (*VARIANTS, "T=sqrt(M)")
    return "; ".join(
        f"{what} {source}"
        for what, source, used in (("csg", csg_source, uses_csg), ("M", width_source, uses_width))
        if used and source.startswith("ours")
    )
