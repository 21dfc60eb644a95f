"""Image folders and ``.npz`` files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tstar.errors import TstarError, require

_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}
_PAIRS = [("x_train", "y_train"), ("x", "y"), ("X", "y"), ("data", "labels"), ("images", "labels")]
_PAIRS += [("data", "target"), ("arr_0", "arr_1")]


class ImageFolder:
    """PATH/CLASS/**/*.jpg: (image, class name) pairs in the order of their paths.

    Files whose ending is no image format, and hidden ones, are left out. An unreadable image is
    remembered in ``unreadable``.
    """

    def __init__(self, root: Path) -> None:
        self._pil = require("PIL.Image", "vision")
        folders = sorted(
            entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")
        )
        parts = [folder.name for folder in folders if folder.name.lower() in _PARTS]
        if parts and len(parts) == len(folders):
            raise TstarError(
                f"{os.fspath(root)!r} must hold one folder a class, but holds the parts "
                f"{', '.join(parts)}; pass {os.fspath(root / parts[-1])!r} or another of them."
            )
        endings = set(self._pil.registered_extensions())
        self.files = [
            (path, folder.name)
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.suffix.lower() in endings and not path.name.startswith(".")
        ]
        if not self.files:
            raise TstarError(
                f"{os.fspath(root)!r} must hold images as CLASS/NAME.jpg (or .png, …), found none."
            )
        self.unreadable: list[str] = []

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        for path, name in self.files:
            try:
                with self._pil.open(path) as image:
                    image.load()
                    loaded = image.copy()
            except (OSError, ValueError, SyntaxError, self._pil.DecompressionBombError) as error:
                self.unreadable.append(f"{os.fspath(path)} ({error})")
                continue
            yield loaded, name


def unreadable_error(files: list[str]) -> TstarError:
    shown = "; ".join(files[:5]) + (f"; and {len(files) - 5} more" if len(files) > 5 else "")
    return TstarError(
        f"Every image must be readable, but {len(files)} {'is' if len(files) == 1 else 'are'} not: "
        f"{shown}. Repair or remove them, or pass skip_unreadable=True (--skip-unreadable)."
    )


def load_npz(path: Path) -> tuple[Any, Any, Any]:
    """Samples, labels and class names (or ``None``) of an ``.npz`` file; its training part if it has parts."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            for x, y in _PAIRS:
                if x in stored.files and y in stored.files:
                    names = stored["classes"] if "classes" in stored.files else None
                    return stored[x], stored[y], names
            keys = ", ".join(stored.files)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise TstarError(
            f"{os.fspath(path)!r} must be an .npz file of plain arrays (no pickles): {error}"
        ) from error
    raise TstarError(
        f"{os.fspath(path)!r} must hold samples and labels under known names (x_train and y_train, x and y, "
        f"data and labels), but holds {keys}; load it and pass both arrays."
    )
