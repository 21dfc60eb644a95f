"""From the package's own files to one self-contained page.

Nothing of the formula is written twice: the coefficients, their ranges and the evidence behind the
default variant are read from the package when the page is made. What the page adds is the algebra in
JavaScript (``formula.js``), which the tests compare with Python's in a real browser.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tstar._version import __version__
from tstar.errors import TstarError
from tstar.formula import cautions, similar
from tstar.formula.choice import REASONS, csg_range, evidence
from tstar.formula.coefficients import published, training_aware
from tstar.formula.equation import COUNTED
from tstar.formula.law import BATCH
from tstar.formula.rules import ROW_NORM, on_one_axis
from tstar.formula.training import MOMENTUM, RATE_FACTOR, SCENARIOS, Training

_HERE = Path(__file__).parent
_PAPER = _HERE.parent / "paper"
_PARTS = {
    "style": "style.css",
    "formula": "formula.js",
    "similar": "similar.js",
    "chart": "chart.js",
    "page": "page.js",
}


def facts() -> dict[str, Any]:
    """Everything the page knows, as plain JSON types."""
    return {
        "version": __version__,
        "sets": {name: entry.to_dict() for name, entry in published().items()},
        "aware": training_aware().to_dict(),
        "evidence": evidence(),
        "csgRange": csg_range(),
        "reasons": REASONS,
        "texts": cautions.TEXTS,
        "counted": COUNTED,
        "limits": {
            name: getattr(cautions, name)
            for name in (
                *(
                    "HARMFUL_BUDGET",
                    "SMALL_BUDGET",
                    "HOT",
                    "FITTED_STEPS",
                    "FITTED_LR",
                    "VALIDATED_LR",
                ),
                *("FEWEST_CLASSES", "BATCH_SIZES", "SAFE", "ORDER", "WORDS", "AWAY"),
            )
        },
        "batch": BATCH,
        "similar": _similar(),
        "momentum": MOMENTUM,
        "rateFactor": RATE_FACTOR,
        "rules": [{"name": rule.name, "label": rule.label} for rule in on_one_axis(1)],
        "rowNorm": ROW_NORM,
        "tasks": _tasks(),
        "models": json.loads((_HERE / "models.json").read_text(encoding="utf-8")),
    }


def page() -> str:
    """The page as HTML: no network, no other file."""
    html = (_HERE / "template.html").read_text(encoding="utf-8")
    parts = {name: (_HERE / file).read_text(encoding="utf-8") for name, file in _PARTS.items()}
    parts["facts"] = _embedded(facts())
    parts["version"] = __version__
    for name, text in parts.items():
        html = html.replace(f"{{{{ {name} }}}}", text)
    return html


def write(path: str | os.PathLike[str]) -> Path:
    """Write the page to ``path`` and return it."""
    target = Path(path)
    try:
        target.write_text(page(), encoding="utf-8")
    except OSError as error:
        raise TstarError(
            f"The page must go to a file that can be written, got {os.fspath(path)!r} "
            f"({error.strerror or error}); pass another with -o."
        ) from error
    return target


def _similar() -> dict[str, Any]:
    """What :mod:`tstar.formula.similar` knows, without what the page does not show."""
    return {
        "usual": _trainings(similar.stored(), tuned=False),
        "tuned": _trainings(similar.stored()["tuned"], tuned=True),
        "rates": similar.RATES,
        "leave": similar.LEAVE,
        "pretrained": similar.PRETRAINED,
        "neighbors": similar.NEIGHBORS,
        "otherNorms": similar.OTHER_NORMS,
        "far": similar.FAR,
        "share": similar.SHARE,
        "most": similar.MOST,
        "long": similar.LONG,
    }


def _trainings(known: Mapping[str, Any], *, tuned: bool) -> dict[str, Any]:
    """The measured trainings at the usual rates, or at tuned ones, and the recipe for each kind of them."""
    needed = ("optimizer", "norms", "inside", "steps", "coordinates", "gains")
    return {
        "rows": [{name: row[name] for name in needed if name in row} for row in known["rows"]],
        **{name: known[name] for name in ("scales", "noise", "widening")},
        "recipes": {
            scenario: {
                family: similar.choice(Training(family, scenario=scenario, tuned=tuned))["recipe"]
                for family in ("sgd", "adam")
            }
            for scenario in SCENARIOS
        },
    }


def _tasks() -> list[dict[str, Any]]:
    """The paper's data sets, easiest first: name, csg, K, and whether the paper prints that csg."""
    # The file is read with csv, not through tstar.paper: that would import pandas for fifteen lines.
    with (_PAPER / "cells" / "tasks.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    tasks = [
        {
            "key": row["dataset"],
            "name": row["name"],
            "csg": float(row["csg"]),
            "classes": int(row["num_classes"]),
            "printed": row["csg_source"] == "printed",
        }
        for row in rows
    ]
    return sorted(tasks, key=lambda task: (task["classes"], task["csg"]))


def _embedded(data: Any) -> str:
    """JSON that may stand inside a ``<script>``: it cannot close the element or open a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
