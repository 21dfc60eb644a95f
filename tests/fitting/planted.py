"""Planted runs, and how they are fitted quickly."""

from research.synthetic import powers_of_two

WIDTHS = (64, 128, 256, 512, 1024)
QUICK = {"bootstrap": 0, "restarts": 2}
GRID = powers_of_two(2, largest=64)
THREE = (64, 256, 1024)
ONCE = {"bootstrap": 0, "restarts": 1}
