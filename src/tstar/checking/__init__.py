"""A short sweep on the user's own model and data."""

from tstar.checking.trial import Check, Row, check

__all__ = ["Check", "Row", "check"]
