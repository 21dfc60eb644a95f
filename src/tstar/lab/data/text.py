"""Text in CSV files: as tf–idf vectors of hashed words, and as a transformer's token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tstar.errors import TstarError, guarded
from tstar.imports import require
from tstar.lab.data.dataset import DataSet, test_rows
from tstar.lab.data.files import labels

if TYPE_CHECKING:
    import pandas as pd

DIMENSIONS = 2048
# Tokens; most questions and commands are shorter, and longer ones begin with what counts.
LIMIT = 24


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


def read_text(files: list[Path], name: str) -> DataSet:
    """CSV files with the columns ``label,text`` and, if you like, ``label_name``.

    A validation file joins the training part, since every run holds out one of its own; a single
    file gets a seeded, stratified fifth as its test part. Each text is the tf–idf of its words and
    word pairs, hashed into 2,048 bins and scaled to unit length: x = v/‖v‖ with
    v_j = n_j·(1 + ln((1 + N)/(1 + N_j))), n_j the count of bin j in the text, N_j the number of the
    N training texts in which it occurs.
    """
    pandas = require("pandas", "lab")
    parts = [_rows(file) for file in files]
    if len(parts) == 1:
        drawn = test_rows(torch.from_numpy(pandas.factorize(parts[0]["label"], sort=True)[0]))
        parts = [parts[0].iloc[rows.numpy()] for rows in drawn]
    train, test = pandas.concat([parts[0], *parts[2:]]), parts[1]
    if test.empty:
        raise TstarError(f"{name} must have texts to test on; add some.")
    names = dict(zip(train["label"], train["label_name"], strict=True))
    y = [part["label"].to_numpy(str) for part in (train, test)]
    # Python refuses to read numbers of thousands of digits; longer ones are names.
    if all(label.isdecimal() and len(label) < 19 for part in y for label in part):
        y = [part.astype(np.int64) for part in y]
        names = {str(int(label)): name for label, name in names.items()}
    y_train, y_test, found = labels(y[0], y[1], None, name)
    texts = tuple(train["text"]), tuple(test["text"])
    x_train, x_test = vectors(*texts)
    classes = tuple(names.get(c, c) for c in found)
    return DataSet(name, "text", x_train, y_train, x_test, y_test, classes, texts)


def vectors(
    train: Sequence[str], test: Sequence[str], dimensions: int = DIMENSIONS
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


def _rows(file: Path) -> pd.DataFrame:
    """The texts of a file with their labels, and the names of these."""
    pandas = require("pandas", "lab")
    with guarded(f"{file} must be a CSV file in UTF-8, but reading it failed"):
        table = pandas.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    if not {"label", "text"} <= {*table.columns}:
        raise TstarError(
            f"{file.name} must have the columns label and text (and, if you like, label_name), "
            f"but its first line has {', '.join(map(str, table.columns))[:200]}."
        )
    if table.empty:
        raise TstarError(f"{file.name} must hold texts, but has none below its first line.")
    bad = (table["text"] == "") | (table["label"] == "")
    if bad.any():
        raise TstarError(
            f"Each row of {file.name} must have a label and a text, but row {bad.argmax() + 1} "
            "below the first line does not."
        )
    names = table["label_name"] if "label_name" in table else table["label"]
    return table.assign(label_name=names.where(names != "", table["label"]))


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
