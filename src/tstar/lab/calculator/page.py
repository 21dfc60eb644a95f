"""From the package's own files to one self-contained page.

The coefficients, their ranges and the law's constants are read from the package when the page is
made. What the page adds is the algebra in JavaScript (``formula.js``), which a test compares
with Python's. Imports neither torch nor NumPy.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tstar import law
from tstar._version import __version__
from tstar.formula import published
from tstar.lab.methods.rules import LABELS, ROW_NORM
from tstar.lab.paper.catalogue import rows_of
from tstar.training import MOMENTUM

_HERE = Path(__file__).parent
_PARTS = {"style": ".css", "formula": ".js", "chart": ".js", "page": ".js"}


def facts() -> dict[str, Any]:
    """Everything the page knows, as plain JSON types."""
    return {
        "version": __version__,
        "sets": {name: entry.to_dict() for name, entry in published().items()},
        "law": {
            **{"sgd": law.SGD, "power": law.POWER, "adam": law.ADAM},
            **{"minimum": law.LOWEST, "maximum": law.HIGHEST},
        },
        "batch": law.BATCH_SIZE,
        "momentum": MOMENTUM,
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


def _tasks() -> list[dict[str, Any]]:
    """The paper's data sets, easiest first: name, csg, K, and whether the paper prints that csg."""
    header, *cells = rows_of("cells/tasks")
    tasks = [
        {
            **{"key": row["dataset"], "name": row["name"], "csg": float(row["csg"])},
            "classes": int(row["num_classes"]),
            "printed": row["csg_source"] == "printed",
        }
        for row in (dict(zip(header, line, strict=True)) for line in cells)
    ]
    return sorted(tasks, key=lambda task: (task["classes"], task["csg"]))
