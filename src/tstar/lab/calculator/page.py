"""From the package's own files to one self-contained page.

The coefficients, their ranges and the choice of a variant are read from the package when the page
is made. What the page adds is the algebra in JavaScript (``formula.js``), which a test compares
with Python's. Imports neither torch nor NumPy.
"""

from __future__ import annotations

import csv
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

from tstar._version import __version__
from tstar.formula import choose_variant, csg_range, published, training_aware
from tstar.lab.methods.rules import LABELS, ROW_NORM
from tstar.law import BATCH
from tstar.training import MOMENTUM, SCENARIOS

_HERE = Path(__file__).parent
_PARTS = {"style": ".css", "formula": ".js", "chart": ".js", "page": ".js"}


def facts() -> dict[str, Any]:
    """Everything the page knows, as plain JSON types."""
    law = training_aware().law
    assert law is not None
    return {
        "version": __version__,
        "sets": {name: entry.to_dict() for name, entry in published().items()},
        "law": law.to_dict(),
        "batch": BATCH,
        "momentum": MOMENTUM,
        "csgRange": csg_range(),
        "choices": _choices(),
        "rules": [{"name": name, "label": label} for name, label in LABELS.items()],
        "rowNorm": ROW_NORM,
        "tasks": _tasks(),
        "models": json.loads((_HERE / "models.json").read_text(encoding="utf-8")),
    }


def page() -> str:
    """The page as HTML: no network, no other file."""
    html = (_HERE / "template.html").read_text(encoding="utf-8")
    parts = {n: (_HERE / f"{n}{end}").read_text(encoding="utf-8") for n, end in _PARTS.items()}
    # It stands inside a <script>: it must not close the element or open a comment.
    data = json.dumps(facts(), ensure_ascii=False, separators=(",", ":"))
    parts |= {"facts": data.replace("<", "\\u003c"), "version": __version__}
    for name, text in parts.items():
        html = html.replace(f"{{{{ {name} }}}}", text)
    return html


def write(path: str | os.PathLike[str]) -> Path:
    """Write the page to ``path`` and return it."""
    target = Path(path)
    target.write_text(page(), encoding="utf-8")
    return target


def _choices() -> dict[str, dict[str, str]]:
    """Which variant the paper's results favor: "scenario|csg|classes" → its name and reason."""
    low, high = csg_range()
    measured = {"none": None, "inside": (low + high) / 2, "outside": 10 * high}
    outside = f"csg lies outside {low:g} to {high:g}, where the paper has data: it is not used."
    found = {}
    for scenario, where, classes in product((None, *SCENARIOS), measured, ("", "K")):
        name, reason = choose_variant(measured[where], scenario, has_classes=bool(classes))
        told = outside if where == "outside" else reason
        found[f"{scenario or ''}|{where}|{classes}"] = {"name": name, "reason": told}
    return found


def _tasks() -> list[dict[str, Any]]:
    """The paper's data sets, easiest first: name, csg, K, and whether the paper prints that csg."""
    # Read with csv, not through tstar.lab.paper, which imports pandas.
    with (_HERE.parent / "paper" / "cells" / "tasks.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        tasks = [
            {
                **{"key": row["dataset"], "name": row["name"], "csg": float(row["csg"])},
                "classes": int(row["num_classes"]),
                "printed": row["csg_source"] == "printed",
            }
            for row in csv.DictReader(file)
        ]
    return sorted(tasks, key=lambda task: (task["classes"], task["csg"]))
