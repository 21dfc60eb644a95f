"""A second worker takes an interpreter more, not the data again: workers share one copy of them."""

import sys

import pytest

pytest.importorskip("PIL.Image")

from benchmarks.memory import peak, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc"),
]


def test_a_second_worker_has_no_copy_of_the_data(tmp_path):
    size = write(tmp_path, 20_000, 96, ["images"])
    one, two = (max(peak(tmp_path, "images", workers)) for workers in (1, 2))
    assert one > size, "less than the data themselves: nothing was measured"
    assert two - one < 0.8 * size  # an interpreter and torch, but not the data again
