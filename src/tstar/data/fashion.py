"""Fashion-MNIST from its four idx files, as its authors, torchvision and Debian distribute them."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch

from tstar.data.dataset import DataSet
from tstar.data.resize import area_resize
from tstar.errors import TstarError, require

CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")  # fmt: skip
# Below the root: torchvision's layout, a plain folder. Last, what Debian's package installs.
FOLDERS = ("FashionMNIST/raw", "fashion-mnist", "datasets/fashion-mnist")
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


def find(root: Path) -> Path | None:
    """The first folder that holds all four files, packed or not."""
    folders = [*(root / folder for folder in FOLDERS), DEBIAN]
    return next((f for f in folders if all(_file(f, name) for name in FILES)), None)


def read_fashion(root: Path, size: int | None, download: bool) -> DataSet:
    """60,000 / 10,000 gray images of 28×28."""
    folder = find(root)
    if folder is None and download:
        require("torchvision.datasets", "vision").FashionMNIST(str(root), download=True)
        folder = find(root)
    if folder is None:
        raise FileNotFoundError
    x_train, y_train, x_test, y_test = (read_idx(_file(folder, name) or folder) for name in FILES)
    images = [torch.from_numpy(x)[:, None] for x in (x_train, x_test)]
    if size is not None:
        images = [area_resize(x, size) for x in images]
    labels = [torch.from_numpy(y.astype(np.int64)) for y in (y_train, y_test)]
    return DataSet("fashion-mnist", "image", images[0], labels[0], images[1], labels[1], CLASSES)


def read_idx(path: Path) -> np.ndarray:
    """An idx file of unsigned bytes: two zero bytes, type 8, the number of dimensions, their sizes
    (big-endian 32-bit), and the values.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
            magic = stream.read(4)
            if len(magic) < 4 or magic[:3] != b"\x00\x00\x08" or not 1 <= magic[3] <= 4:
                raise TstarError(
                    f"{path} must be an idx file of unsigned bytes, but starts with {magic!r}."
                )
            sizes = stream.read(4 * magic[3])
            if len(sizes) < 4 * magic[3]:
                raise TstarError(
                    f"{path} must name the sizes of {magic[3]} dimensions, but ends before."
                )
            shape = struct.unpack(f">{magic[3]}I", sizes)
            expected = math.prod(shape)
            values = stream.read(expected + 1)  # no more than the header promises
    except (OSError, EOFError, zlib.error) as error:
        raise TstarError(f"{path} must be an idx file, but reading it failed: {error}") from error
    if len(values) != expected:
        raise TstarError(
            f"{path} must hold {'×'.join(map(str, shape))} bytes, as its header says, but holds "
            f"{'more' if len(values) > expected else len(values)}; fetch it again."
        )
    array: np.ndarray = np.frombuffer(values, dtype=np.uint8).reshape(shape).copy()
    return array


def _file(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
