"""Planted runs, and what is read from them."""

import pytest

from tests.lab.fitting.planted import GRID, THREE
from tests.synthetic import planted_runs, powers_of_two
from tstar.lab.curves import grids, lines
from tstar.lab.fitting.model import problem


@pytest.fixture(scope="module")
def runs():
    return planted_runs(grid=GRID, widths=THREE)


@pytest.fixture(scope="module")
def found():
    runs = planted_runs(grid=powers_of_two(2, largest=64), seeds=2, noise=0.01)
    return grids(runs)


@pytest.fixture(scope="module")
def task(found):
    return problem(found, lines(found, "val"), "csgcn")


@pytest.fixture
def small():
    return planted_runs(grid=[1, 2, 4, 8, 16], widths=(64, 256))
