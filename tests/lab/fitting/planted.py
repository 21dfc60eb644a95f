"""Planted runs, and how they are fitted quickly."""

import numpy as np

from tests.synthetic import powers_of_two
from tstar.lab.curves import Curve, lines
from tstar.lab.fitting.model import problem

WIDTHS = (64, 128, 256, 512, 1024)
QUICK = {"bootstrap": 0, "restarts": 2}
GRID = powers_of_two(2, largest=64)
THREE = (64, 256, 1024)
ONCE = {"bootstrap": 0, "restarts": 1}


def curve(accuracies, grid=(1.0, 11.0, 21.0), diverged=0, **facts):
    """One seed's accuracies on a grid."""
    values = np.array([accuracies], float)
    ran = np.ones(values.shape, bool)
    return Curve(facts, np.array(grid, float), (0,), values, values, ran, diverged)


def tent():
    """T = 4α + β for one condition; the accuracy is 0.9 at T = 11 and falls by 0.04 for each 1 of T."""
    made = [curve([0.5, 0.9, 0.5], num_features=16)]
    return problem(made, lines(made, "val", interpolation="T"), "base", check=False)
