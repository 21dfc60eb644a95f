"""Methods side by side: paired by seed, chosen on validation data, scored on test data.

::

    comparison = compare_methods(tstar.data.load("digits"), "resnet10", ["default", "ours-cn"], seeds=5)
    print(to_markdown(comparison.rows()))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tstar.lazy import lazy

if TYPE_CHECKING:
    from tstar.comparing.harness import Comparison, compare_methods, plan
    from tstar.comparing.reliability import draw_reliability, reliability_data
    from tstar.comparing.statistics import Paired, Row, Run, paired, summarize
    from tstar.comparing.tables import save, to_csv, to_markdown, to_table

_LAZY = {
    "Comparison": "harness",
    "Run": "statistics",
    "compare_methods": "harness",
    "plan": "harness",
    "draw_reliability": "reliability",
    "reliability_data": "reliability",
    "Paired": "statistics",
    "Row": "statistics",
    "paired": "statistics",
    "summarize": "statistics",
    "save": "tables",
    "to_csv": "tables",
    "to_markdown": "tables",
    "to_table": "tables",
}
__all__ = [
    "Comparison",
    "Paired",
    "Row",
    "Run",
    "compare_methods",
    "draw_reliability",
    "paired",
    "plan",
    "reliability_data",
    "save",
    "summarize",
    "to_csv",
    "to_markdown",
    "to_table",
]


__getattr__ = lazy(__name__, _LAZY)
