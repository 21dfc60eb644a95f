"""The paper's own results as data: every table, its marks, and what its cells say.

Hasegawa & Sakai, "Analytical Softmax Temperature Setting from Feature Dimensions for Model- and
Domain-Robust Classification". ``table("datasets")`` and its like are data frames, one row per
printed row; ``tstar paper`` lists them.
"""

from tstar.lab.paper.catalogue import marks, table

__all__ = ["marks", "table"]
