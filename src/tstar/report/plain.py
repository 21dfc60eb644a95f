"""A figure's data as plain JSON types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def plain_data(value: Any) -> Any:
    """Named tuples as objects, arrays as lists, NaN as null."""
    if hasattr(value, "_asdict"):
        return {name: plain_data(item) for name, item in value._asdict().items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain_data(value.tolist())
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
