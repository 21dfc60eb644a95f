"""Methods side by side: paired by seed, chosen on validation data, scored on test data.

::

    comparison = tstar.lab.compare("digits", "resnet10", ["default", "ours-cn"], seeds=5)
    print(comparison)                          # the table
    comparison.save("tstar-compare")           # the table and the runs
"""

from tstar.lab.comparing.harness import compare, cost, plan
from tstar.lab.comparing.record import Comparison, Row, Run

__all__ = ["Comparison", "Row", "Run", "compare", "cost", "plan"]
