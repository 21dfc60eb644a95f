"""The paper's own results as data: every table, its marks, what its cells say, and an analysis of them.

Hasegawa & Sakai, "Analytical Softmax Temperature Setting from Feature Dimensions for Model- and
Domain-Robust Classification". ``table("datasets")`` and its like are pandas data frames, one row a
printed row; ``records()`` is the long form with the temperature behind each cell.
"""

from tstar.paper.loading import marks, table, tables
from tstar.paper.longform import records
from tstar.paper.recomputed import Check, checks, discrepancies

__all__ = ["Check", "checks", "discrepancies", "marks", "records", "table", "tables"]
