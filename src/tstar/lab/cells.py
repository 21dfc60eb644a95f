"""What goes into files: cells of CSV that no spreadsheet runs, and values that JSON can hold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

# A spreadsheet takes a cell that starts so for a formula. An apostrophe goes before it.
_FORMULA = re.compile(r"^(?='*[=+\-@\t\r\n])")
DISARMED = r"^'(?='*[=+\-@\t\r\n])"


def disarmed(cell: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    return _FORMULA.sub("'", cell) if isinstance(cell, str) else cell


def plain(value: Any) -> Any:
    """A value as JSON holds it: a number that is not finite becomes null, text stays as it is.

    >>> plain({"name": "NaNet", "loss": [0.5, float("inf")]})
    {'name': 'NaNet', 'loss': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
