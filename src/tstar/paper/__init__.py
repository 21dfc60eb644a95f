"""The paper's own results as data: every table, its marks, and what its cells say.

Hasegawa & Sakai, "Analytical Softmax Temperature Setting from Feature Dimensions for Model- and
Domain-Robust Classification". ``table("datasets")`` and its like are pandas data frames, one row a
printed row; ``records()`` is the long form with the temperature behind each cell.
"""

from tstar.paper.loading import marks, table, tables
from tstar.paper.longform import records

__all__ = ["marks", "records", "table", "tables"]
