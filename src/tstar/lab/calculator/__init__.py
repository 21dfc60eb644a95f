"""The calculator: one HTML file that shows T under every variant and rule, and fetches nothing."""

from tstar.lab.calculator.page import facts, page, write

__all__ = ["facts", "page", "write"]
