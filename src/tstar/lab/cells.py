"""Cells of CSV files: what a spreadsheet would run is disarmed, and comes back as it was."""

from __future__ import annotations

import re

# A spreadsheet takes a cell that starts so for a formula. An apostrophe goes before it.
_FORMULA = re.compile(r"^(?='*[=+\-@\t\r\n])")
DISARMED = r"^'(?='*[=+\-@\t\r\n])"


def disarmed(cell: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    return _FORMULA.sub("'", cell) if isinstance(cell, str) else cell
