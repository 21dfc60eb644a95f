"""The state of a run under way, on disk, from which it goes on bit for bit."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

from tstar.errors import TstarError


class Checkpoint:
    """One file, written whole every ``minutes`` and removed when the run has ended."""

    def __init__(self, path: str | Path, minutes: float) -> None:
        self.path, self.minutes = Path(path), minutes
        self._written = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._written >= 60 * self.minutes

    def save(self, state: dict[str, Any]) -> None:
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(state, part)
            part.replace(self.path)
        except OSError as error:
            raise TstarError(
                f"The checkpoint {str(self.path)!r} could not be written: {error}."
            ) from error
        self._written = time.monotonic()

    def load(self, device: torch.device) -> dict[str, Any] | None:
        """The last state, or ``None``; a file that cannot be read counts as none: the run starts anew."""
        try:
            state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        except FileNotFoundError:
            return None
        except Exception:  # a damaged file may raise anything
            return None
        return state

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
