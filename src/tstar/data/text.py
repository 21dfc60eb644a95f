"""Text in CSV files as vectors: hashed words and word pairs, weighted by tf–idf (scikit-learn)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import torch

from tstar.data.dataset import DataSet
from tstar.data.limits import VARIABLE, most_bytes, parsing
from tstar.data.splits import test_rows
from tstar.errors import TstarError, require

DIMENSIONS = 2048
NGRAMS = (1, 2)


def text_files(path: Path) -> list[Path]:
    """The CSV files of the data set ``path`` (given with or without ``.csv`` or ``_train.csv``).

    ``[train, test]``, ``[train, test, val]``, or a single file without parts; empty if there are none.
    """
    stem = text_name(path)
    train, test, val = (path.with_name(f"{stem}_{part}.csv") for part in ("train", "test", "val"))
    if train.is_file() and test.is_file():
        return [train, test, *([val] if val.is_file() else [])]
    single = path.with_name(f"{stem}.csv")
    return [single] if single.is_file() else []


def text_name(path: Path) -> str:
    """What the data set of a CSV file is called."""
    return path.name.removesuffix(".csv").removesuffix("_train")


def read_text(files: list[Path], name: str, dimensions: int = DIMENSIONS) -> DataSet:
    """CSV files with the columns ``label,text`` and, if you like, ``label_name``.

    A validation file joins the training part, since every run holds out one of its own; a single
    file gets a seeded, stratified fifth as its test part. Each text is the tf–idf of its words and
    word pairs, hashed into ``dimensions`` bins and scaled to unit length: x = v/‖v‖ with
    v_j = n_j·(1 + ln((1 + N)/(1 + N_j))), n_j the count of bin j in the text, N_j the number of the
    N training texts in which it occurs.
    """
    rows = [_rows(file) for file in files]
    if len(rows) == 1:
        texts, given = rows[0]
        y = np.unique(np.array([label for label, _ in given]), return_inverse=True)[1]
        rest, drawn = test_rows(torch.from_numpy(y))
        rows = [
            ([texts[i] for i in p.tolist()], [given[i] for i in p.tolist()]) for p in (rest, drawn)
        ]
    train_texts, train_given = rows[0]
    for texts, given in rows[2:]:
        train_texts, train_given = train_texts + texts, train_given + given
    classes, number = _classes(train_given, name)
    strange = sorted({label for label, _ in rows[1][1]} - set(number))
    if strange:
        raise TstarError(
            f"Test labels of {name} must occur in its training part, but {strange[0]!r} does not."
        )
    if not (train_texts and rows[1][0]):
        raise TstarError(f"{name} must have texts to train on and to test on; add some.")
    x_train, x_test = vectors(train_texts, rows[1][0], dimensions)
    y_train, y_test = (
        torch.tensor([number[label] for label, _ in part], dtype=torch.int64)
        for part in (train_given, rows[1][1])
    )
    given_texts = (tuple(train_texts), tuple(rows[1][0]))
    return DataSet(name, "text", x_train, y_train, x_test, y_test, classes, given_texts)


def vectors(
    train: list[str], test: list[str], dimensions: int = DIMENSIONS
) -> tuple[torch.Tensor, torch.Tensor]:
    """The texts as N×D float32; the weights are fitted on ``train`` only."""
    needed = 4 * (len(train) + len(test)) * dimensions
    if needed > 4 * most_bytes():
        raise TstarError(
            f"{len(train) + len(test):,} texts of {dimensions} dimensions would need {needed:,} bytes; pass a "
            f"smaller text_features, or set {VARIABLE}={-(-needed >> 22)}."
        )
    text = require("sklearn.feature_extraction.text", "sweep")
    hashing = text.HashingVectorizer(
        n_features=dimensions, ngram_range=NGRAMS, alternate_sign=False, norm=None, dtype=np.float32
    )
    weights = text.TfidfTransformer()
    first = weights.fit_transform(hashing.transform(train))
    second = weights.transform(hashing.transform(test))
    x_train, x_test = (
        torch.from_numpy(part.toarray().astype(np.float32)) for part in (first, second)
    )
    return x_train, x_test


def _rows(file: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Texts, and (label, label_name) of each."""
    with (
        parsing(file, "a CSV file in UTF-8"),
        file.open(encoding="utf-8-sig", newline="") as stream,
    ):
        reader = csv.DictReader(stream, strict=True)
        columns = list(reader.fieldnames or [])
        if not {"label", "text"} <= set(columns):
            raise TstarError(
                f"{file.name} must have the columns label and text (and, if you like, label_name), "
                f"but its first line has {', '.join(columns)[:200] or 'none'}."
            )
        texts, labels = [], []
        for row in reader:
            if not row["label"] or row["text"] is None:
                raise TstarError(
                    f"Each line of {file.name} must have a label and a text, but line "
                    f"{reader.line_num} does not."
                )
            texts.append(row["text"])
            labels.append((row["label"], row.get("label_name") or row["label"]))
    if not texts:
        raise TstarError(f"{file.name} must hold texts, but has none below its first line.")
    return texts, labels


def _classes(given: list[tuple[str, str]], name: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """Class names in the order of their labels, and the label's text → number."""
    names: dict[str, str] = {}
    for label, label_name in given:
        if names.setdefault(label, label_name) != label_name:
            raise TstarError(
                f"Each label of {name} must have one name, but label {label} is called both "
                f"{names[label]!r} and {label_name!r}."
            )
    # Python refuses to read numbers of thousands of digits; longer ones are names.
    if all(label.isdecimal() and len(label) < 19 for label in names):
        order = sorted(names, key=int)
        if [int(label) for label in order] != list(range(len(order))):
            raise TstarError(
                f"Labels of {name} must be 0…{len(order) - 1} without gaps, but run from {order[0]} to "
                f"{order[-1]}; renumber them, or use names as labels."
            )
    else:
        order = sorted(names)
    return tuple(names[label] for label in order), {label: i for i, label in enumerate(order)}
