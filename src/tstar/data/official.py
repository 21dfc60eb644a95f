"""Readers for the official layouts of three data sets that torchvision does not have."""

from __future__ import annotations

import csv
from pathlib import Path

from tstar.data.dataset import DataSet
from tstar.data.folders import from_files
from tstar.errors import TstarError

_ISIC_TRUTH = "ISIC_2019_Training_GroundTruth.csv"
_ISIC_IMAGES = "ISIC_2019_Training_Input"


def read_tiny_imagenet(root: Path, size: int | None, download: bool) -> DataSet:
    """``tiny-imagenet-200``: the official validation part is the test part (the test part has no labels).

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
    test = []
    for line in _lines(folder / "val" / "val_annotations.txt"):
        file, wnid, *_ = [*line.split("\t"), ""]
        if wnid not in number:
            raise TstarError(
                f"val_annotations.txt of {folder} must name ids of wnids.txt, but got {wnid!r}."
            )
        test.append((folder / "val" / "images" / file, number[wnid]))
    return from_files("tiny-imagenet", classes, train, test, size)


def read_cub(root: Path, size: int | None, download: bool) -> DataSet:
    """``CUB_200_2011``: the official split of ``train_test_split.txt``."""
    folder = root / "CUB_200_2011"
    classes = _numbered(folder / "classes.txt")
    images = _numbered(folder / "images.txt")
    labels = _numbered(folder / "image_class_labels.txt")
    in_training = _numbered(folder / "train_test_split.txt")
    if not images.keys() == labels.keys() == in_training.keys():
        raise TstarError(
            f"images.txt, image_class_labels.txt and train_test_split.txt of {folder} must list the same "
            "images, but do not; unpack the archive again."
        )
    order = sorted(classes, key=int)
    number = {key: label for label, key in enumerate(order)}
    train: list[tuple[Path, int]] = []
    test: list[tuple[Path, int]] = []
    for key, file in images.items():
        part = train if in_training[key] == "1" else test
        part.append((folder / "images" / file, number[labels[key]]))
    return from_files("cub-200-2011", [classes[key] for key in order], train, test, size)


def read_isic(root: Path, size: int | None, download: bool) -> DataSet:
    """ISIC 2019's labeled part, eight diagnoses; a seeded, stratified fifth of it is the test part.

    The challenge's own test part has a class that no training image has, and its labels came later.
    Several images of one lesion may lie on both sides of this split.
    """
    path = root / _ISIC_TRUTH
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    columns = [c for c in (rows[0] if rows else {}) if c not in ("image", "UNK")]
    if not rows or "image" not in rows[0] or len(columns) < 2:
        raise TstarError(
            f"{path} must have the columns image, MEL, NV, …, but has {columns or 'none'}."
        )
    samples = []
    for row in rows:
        hits = [label for label, column in enumerate(columns) if float(row[column] or 0) == 1]
        if len(hits) != 1:
            raise TstarError(
                f"Each line of {path.name} must mark one diagnosis, but {row['image']} has {len(hits)}."
            )
        samples.append((root / _ISIC_IMAGES / f"{row['image']}.jpg", hits[0]))
    return from_files("isic-2019", columns, samples, None, size)


def _numbered(path: Path) -> dict[str, str]:
    """Lines ``key value`` as a mapping."""
    return dict(line.split(maxsplit=1) for line in _lines(path) if line)


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
