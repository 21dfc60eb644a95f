"""Data of a figure as plain JSON."""

import json
from typing import NamedTuple

import numpy as np

from tstar.report.plain import plain_data


class Panel(NamedTuple):
    title: str
    values: np.ndarray
    share: float


def test_arrays_records_and_gaps_become_json():
    panel = Panel("a", np.array([[1.0, np.nan], [3.0, 4.0]]), float("inf"))
    plain = plain_data((panel, (np.int64(1), None)))
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain == [{"title": "a", "values": [[1.0, None], [3.0, 4.0]], "share": None}, [1, None]]
