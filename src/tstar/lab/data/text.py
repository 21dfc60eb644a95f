"""Text in CSV files: as tf–idf vectors of hashed words, and as a transformer's token ids."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.errors import TstarError, guarded
from tstar.imports import require
from tstar.lab.data.dataset import DataSet, test_rows
from tstar.lab.data.files import labels

DIMENSIONS = 2048
# Tokens; most questions and commands are shorter, and longer ones begin with what counts.
LIMIT = 24
Row = tuple[str, str, str]  # label, its name, text


def text_files(path: Path) -> list[Path]:
    """The CSV files of the data set ``path`` (with or without ``.csv`` or ``_train.csv``).

    ``[train, test]``, ``[train, test, val]``, or a single file without parts; empty if none.
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
    parts = [_rows(file) for file in files]
    if len(parts) == 1:
        codes = np.unique([label for label, _, _ in parts[0]], return_inverse=True)[1]
        drawn = test_rows(torch.from_numpy(codes))
        parts = [[parts[0][i] for i in rows.tolist()] for rows in drawn]
    train, test = parts[0] + [row for part in parts[2:] for row in part], parts[1]
    if not test:
        raise TstarError(f"{name} must have texts to test on; add some.")
    names = {label: label_name for label, label_name, _ in train}
    y = [np.array([label for label, _, _ in part]) for part in (train, test)]
    # Python refuses to read numbers of thousands of digits; longer ones are names.
    if all(label.isdecimal() and len(label) < 19 for part in y for label in part):
        y = [part.astype(np.int64) for part in y]
        names = {str(int(label)): label_name for label, label_name in names.items()}
    y_train, y_test, found = labels(y[0], y[1], None, name)
    texts = [text for _, _, text in train], [text for _, _, text in test]
    x_train, x_test = vectors(*texts, dimensions)
    classes, kept = tuple(names.get(c, c) for c in found), (tuple(texts[0]), tuple(texts[1]))
    return DataSet(name, "text", x_train, y_train, x_test, y_test, classes, kept)


def vectors(
    train: list[str], test: list[str], dimensions: int = DIMENSIONS
) -> tuple[Tensor, Tensor]:
    """The texts as N×D float32; the weights are fitted on ``train`` only."""
    text = require("sklearn.feature_extraction.text", "lab")
    hashing = text.HashingVectorizer(
        n_features=dimensions, ngram_range=(1, 2), alternate_sign=False, norm=None, dtype=np.float32
    )
    weights = text.TfidfTransformer()
    first = weights.fit_transform(hashing.transform(train))
    second = weights.transform(hashing.transform(test))
    x, x_test = (torch.from_numpy(part.toarray().astype(np.float32)) for part in (first, second))
    return x, x_test


def _rows(file: Path) -> list[Row]:
    with (
        guarded(f"{file} must be a CSV file in UTF-8, but reading it failed"),
        file.open(encoding="utf-8-sig", newline="") as stream,
    ):
        reader = csv.DictReader(stream, strict=True)
        if not {"label", "text"} <= set(reader.fieldnames or ()):
            raise TstarError(
                f"{file.name} must have the columns label and text (and, if you like, label_name), "
                f"but its first line has {', '.join(reader.fieldnames or ())[:200] or 'none'}."
            )
        rows = []
        for row in reader:
            if not row["label"] or row["text"] is None:
                raise TstarError(
                    f"Each line of {file.name} must have a label and a text, but line "
                    f"{reader.line_num} does not."
                )
            rows.append((row["label"], row.get("label_name") or row["label"], row["text"]))
    if not rows:
        raise TstarError(f"{file.name} must hold texts, but has none below its first line.")
    return rows


def tokenize(data: DataSet, source: str, *, limit: int = LIMIT) -> DataSet:
    """``data`` with its texts as token ids of the model ``source`` (a folder, or a hub's name).

    x becomes N×L int64, L the longest text's number of tokens, but at most ``limit``: longer texts
    are cut. Shorter ones are filled up on the right with the model's padding id, which its
    configuration must name; the model's wrapper (:class:`tstar.lab.models.zoo.TokenLogits`)
    rebuilds the attention mask from it.
    """
    if data.texts is None:
        raise TstarError(
            f"{data.name} must hold texts to be tokenized, but has {data.domain} samples only; "
            "read it from CSV files of text."
        )
    transformers = require("transformers", "text")
    with guarded(
        f"{source!r} must be the folder of a model with a tokenizer, or a name and a network "
        "connection, but reading it failed"
    ):
        config = transformers.AutoConfig.from_pretrained(source)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    padding: Any = getattr(config, "pad_token_id", None)
    if padding is None:
        raise TstarError(
            f"The configuration of {source!r} must name a padding token, but its pad_token_id is "
            "not set; set it in its config.json."
        )
    limit = min(limit, tokenizer.model_max_length)
    ids = [
        tokenizer([*part], truncation=True, max_length=limit)["input_ids"] for part in data.texts
    ]
    length = max(len(row) for part in ids for row in part)
    x, x_test = (
        torch.tensor([row + [int(padding)] * (length - len(row)) for row in part]) for part in ids
    )
    return replace(data, domain="tokens", x_train=x, x_test=x_test)
