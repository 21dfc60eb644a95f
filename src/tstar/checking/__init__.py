"""A short sweep on the user's own model and data."""

from tstar.checking.record import Check, Row
from tstar.checking.trial import check

__all__ = ["Check", "Row", "check"]
