"""Two workers take hardly more memory than one: they share one copy of the data, and torch's own pages."""

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
    assert two <= 1.1 * one
