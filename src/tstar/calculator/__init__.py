"""The calculator: one HTML file that shows T under every variant and rule, with nothing to install or fetch."""

from tstar.calculator.page import facts, page, write

__all__ = ["facts", "page", "write"]
