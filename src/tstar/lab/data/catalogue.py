"""The data sets that have a name: what each is, where it must lie, and how it is read.

CIFAR's archives are pickles. torchvision compares their checksums before it opens them; this is the
only place where anything is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.errors import TstarError, guarded
from tstar.imports import require
from tstar.lab.data.dataset import DataSet, divided
from tstar.lab.data.images import from_files, pixels_of, resized, stack


@dataclass(frozen=True)
class Entry:
    """One data set: the path below the root that must exist, and where to get it.

    ``loader`` and ``parts`` are torchvision's class and what chooses the official parts,
    (training, test).
    """

    name: str
    folder: str = ""
    source: str = ""
    loader: str | None = None
    parts: tuple[Sequence[str | bool], Sequence[str | bool]] = ((), ())

    def base(self, root: Path) -> Path | None:
        """The folder to read from, ``root`` or ``root/NAME``; ``None`` if there are no data."""
        return next((b for b in (root, root / self.name) if (b / self.folder).exists()), None)

    def read(self, root: Path, size: int | None, download: bool) -> DataSet:
        """The data set, or one error that says what to put where."""
        base, downloads = self.base(root), self.loader is not None
        fetch = f"or fetch it with tstar.lab.data.load({self.name!r}, download=True), "
        must = (
            f"{self.name} must be on disk as {root / self.folder}; get it from {self.source} and "
            f"unpack it there, {fetch if downloads else ''}or set root=… or TSTAR_DATA to the "
            "folder that holds it"
        )
        # Asked first: some loaders create folders before they find out that there is nothing.
        if base is None and self.folder and not (download and downloads):
            raise TstarError(f"{must}: it is not there.")
        read = _READERS.get(self.name, partial(_from_torchvision, self))
        with guarded(must):
            return read(base or root, size, download)


def read_digits(root: Path, size: int | None, download: bool) -> DataSet:
    """1,797 digits, 1×8×8 (0…16 brought to 0…255); they come with the package.

    The test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998,
    UCI Machine Learning Repository, CC BY 4.0), in the order of scikit-learn's ``load_digits``.
    """
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        gray = np.round(file["x"] * (255 / 16)).astype(np.uint8)
        y = torch.from_numpy(file["y"].astype(np.int64))
    x = resized(torch.from_numpy(gray)[:, None], size)
    return DataSet("digits", "image", *divided(x, y), tuple(map(str, range(10))))


def _from_torchvision(entry: Entry, root: Path, size: int | None, download: bool) -> DataSet:
    """Official validation parts join the training part."""
    make = getattr(require("torchvision.datasets", "vision"), str(entry.loader))

    def opened(parts: Sequence[str | bool]) -> list[Any]:
        chosen = [{"split" if isinstance(part, str) else "train": part} for part in parts]
        return [make(str(root), download=download, **options) for options in chosen]

    train, test = map(opened, entry.parts)
    train = train or [make(str(root), download=download)]
    found = getattr(train[0], "classes", None) or getattr(train[0], "categories", None)
    x, y = _part(train, size, entry.name)
    classes = tuple(found or map(str, range(int(y.max()) + 1)))
    parts = (x, y, *_part(test, size, entry.name)) if test else divided(x, y)
    return DataSet(entry.name, "image", *parts, classes)


def _part(sets: Sequence[Any], size: int | None, name: str) -> tuple[Tensor, Tensor]:
    """All samples of torchvision's sets, from ``data`` if they hold it."""
    labels = torch.cat([_targets(one) for one in sets])
    if hasattr(sets[0], "data"):  # N×H×W×C, N×C×H×W in STL10, N×H×W in Fashion-MNIST
        arrays = [np.asarray(one.data) for one in sets]
        arrays = [x[..., None] if x.ndim == 3 else x for x in arrays]
        first = [x if x.shape[1] == 3 else x.transpose(0, 3, 1, 2) for x in arrays]
        tensors = [resized(torch.from_numpy(np.ascontiguousarray(x)), size) for x in first]
        return torch.cat(tensors), labels
    every: Any = torch.utils.data.ConcatDataset(sets)

    def image_at(index: int) -> np.ndarray:
        with guarded(f"Image {index} of {name} could not be read"):
            return pixels_of(every[index][0], size)

    return stack(image_at, len(every), name), labels


def _targets(one: Any) -> Tensor:
    """All labels, without opening an image; the loaders keep them under different names."""
    for attribute in ("targets", "labels", "_labels", "y"):
        if hasattr(one, attribute):
            return torch.as_tensor(np.asarray(getattr(one, attribute)), dtype=torch.int64)
    return torch.tensor([label for _, label in one._samples], dtype=torch.int64)


def read_tiny_imagenet(root: Path, size: int | None, download: bool) -> DataSet:
    """``tiny-imagenet-200``: the official validation part is the test part, which has no labels.

    Classes are ordered by WordNet id, and named by the first word of ``words.txt``.
    """
    folder = root / "tiny-imagenet-200"
    ids = sorted(line for line in _lines(folder / "wnids.txt") if line)
    number = {wnid: label for label, wnid in enumerate(ids)}
    words = dict(line.split("\t", 1) for line in _lines(folder / "words.txt") if "\t" in line)
    names = [words.get(wnid, wnid).split(",")[0] for wnid in ids]
    classes = [n if names.count(n) == 1 else f"{n} ({i})" for n, i in zip(names, ids, strict=True)]
    train = [
        (file, number[wnid])
        for wnid in ids
        for file in sorted((folder / "train" / wnid / "images").glob("*.JPEG"))
    ]
    rows = [line.split("\t")[:2] for line in _lines(folder / "val" / "val_annotations.txt")]
    test = [(folder / "val" / "images" / file, number[wnid]) for file, wnid in rows]
    return from_files("tiny-imagenet", classes, train, test, size)


def read_cub(root: Path, size: int | None, download: bool) -> DataSet:
    """``CUB_200_2011``: the official split of ``train_test_split.txt``."""
    folder = root / "CUB_200_2011"
    classes, images, labels, in_training = (
        dict(line.split(maxsplit=1) for line in _lines(folder / f"{name}.txt") if line)
        for name in ("classes", "images", "image_class_labels", "train_test_split")
    )
    order = sorted(classes, key=int)
    number = {key: label for label, key in enumerate(order)}
    parts: dict[str, list[tuple[Path, int]]] = {"1": [], "0": []}
    for key, file in images.items():
        parts[in_training[key]].append((folder / "images" / file, number[labels[key]]))
    names = [classes[key] for key in order]
    return from_files("cub-200-2011", names, parts["1"], parts["0"], size)


def read_isic(root: Path, size: int | None, download: bool) -> DataSet:
    """ISIC 2019's labeled part, eight diagnoses; a seeded, stratified fifth is the test part.

    The challenge's own test part has a class that no training image has, and its labels came later.
    Several images of one lesion may lie on both sides of this split.
    """
    rows = require("pandas", "lab").read_csv(root / "ISIC_2019_Training_GroundTruth.csv")
    diagnoses = rows.drop(columns=["image", "UNK"])
    if (diagnoses.sum(axis=1) != 1).any():
        raise ValueError("each image must have one diagnosis")
    folder = root / "ISIC_2019_Training_Input"
    files = [folder / f"{image}.jpg" for image in rows["image"]]
    samples = [*zip(files, diagnoses.to_numpy().argmax(1).tolist(), strict=True)]
    return from_files("isic-2019", [*diagnoses.columns], samples, None, size)


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]


_READERS: dict[str, Callable[[Path, int | None, bool], DataSet]] = {
    "digits": read_digits,
    "tiny-imagenet": read_tiny_imagenet,
    "cub-200-2011": read_cub,
    "isic-2019": read_isic,
}
CATALOGUE: dict[str, Entry] = {
    facts["name"]: Entry(**facts)
    for facts in json.loads((files(__package__) / "catalogue.json").read_text(encoding="utf-8"))
}
