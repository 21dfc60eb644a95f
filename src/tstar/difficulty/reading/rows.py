"""Rows collected one after the other, in memory that is bounded by the matrix itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.reading.matrix import check_finite
from tstar.errors import TstarError


class Rows:
    """Grows into an (N, D) matrix: 8-bit while all rows are (N·D bytes), float32 from the first other.

    Where the number of samples is known the matrix is allocated once; else it doubles as it fills.
    """

    def __init__(self, expected: int | None) -> None:
        self._room = expected or 1024
        self._values: NDArray[np.generic] | None = None
        self._count = 0

    def add(self, row: NDArray[np.generic]) -> None:
        check_finite(row[None], self._count)
        if self._values is None:
            self._values = np.empty((self._room, len(row)), row.dtype)
        values = self._values
        if len(row) != values.shape[1]:
            raise TstarError(
                f"All samples must have the same number of values, but sample {self._count} has "
                f"{len(row)} and those before it {values.shape[1]}; pass size=32 to bring images of "
                "mixed sizes to one."
            )
        if values.dtype == np.uint8 and row.dtype != np.uint8:
            values = self._values = self._as_floats(values, row.dtype)
        elif values.dtype != np.uint8 and row.dtype == np.uint8:
            row = row / np.float32(255)
        if self._count == len(values):
            grown = np.empty((2 * len(values), values.shape[1]), values.dtype)
            grown[: self._count] = values
            values = self._values = grown
        values[self._count] = row
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def matrix(self) -> NDArray[np.generic]:
        if self._values is None:
            return np.empty((0, 0), np.uint8)
        return self._values[: self._count]

    def _as_floats(
        self, values: NDArray[np.generic], dtype: np.dtype[np.generic]
    ) -> NDArray[np.generic]:
        floats = np.empty(values.shape, dtype)
        floats[: self._count] = values[: self._count] / np.float32(255)
        return floats
