"""Methods side by side: paired by seed, chosen on validation data, scored on test data.

::

    comparison = compare_methods(tstar.data.load("digits"), "resnet10", ["default", "ours-cn"], seeds=5)
    print(to_markdown(comparison.rows()))
"""

from tstar.comparing.harness import Comparison, compare_methods, plan
from tstar.comparing.reliability import draw_reliability, reliability_data
from tstar.comparing.statistics import Paired, Row, Run, paired, summarize
from tstar.comparing.tables import save, to_csv, to_markdown, to_table

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
