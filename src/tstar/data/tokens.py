"""Texts as the token ids that a transformer takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tstar.data.dataset import DataSet
from tstar.data.limits import fetched
from tstar.errors import TstarError, require
from tstar.numbers import whole

# Tokens; most questions and commands are shorter, and longer ones begin with what counts.
LIMIT = 24


def tokenize(data: DataSet, source: str, *, limit: int = LIMIT) -> DataSet:
    """``data`` with its texts as token ids of the model ``source`` (a folder, or a name of the hub).

    x becomes N×L int64, L the longest text's number of tokens, but at most ``limit``: longer texts
    are cut. Shorter ones are filled up on the right with the model's padding id, which its
    configuration must name; the model's wrapper (:class:`tstar.models.zoo.TokenLogits`) rebuilds the
    attention mask from it.
    """
    whole("limit", limit, least=1)
    if data.texts is None:
        raise TstarError(
            f"{data.name} must hold texts to be tokenized, but has {data.domain} samples only; "
            "read it from CSV files of text."
        )
    tokenizer, padding = _tokenizer(source)
    limit = min(limit, tokenizer.model_max_length)
    train, test = (
        tokenizer(list(part), truncation=True, max_length=limit)["input_ids"] for part in data.texts
    )
    length = max(map(len, [*train, *test]))
    if length == 0:
        raise TstarError(f"The texts of {data.name} must give tokens, but {source!r} finds none.")
    x_train, x_test = (_filled(rows, length, padding) for rows in (train, test))
    return replace(data, domain="tokens", x_train=x_train, x_test=x_test)


def _tokenizer(source: str) -> tuple[Any, int]:
    """The tokenizer of a model, and its padding id."""
    transformers = require("transformers", "transformers")
    config, tokenizer = fetched(
        lambda: [
            auto.from_pretrained(source)
            for auto in (transformers.AutoConfig, transformers.AutoTokenizer)
        ],
        f"The tokenizer of {source!r}",
        "Text needs a model with a tokenizer: a folder with its files, or a name and a network connection.",
    )
    padding = getattr(config, "pad_token_id", None)
    if padding is None:
        raise TstarError(
            f"The configuration of {source!r} must name a padding token, but its pad_token_id is not "
            "set; set it in its config.json."
        )
    return tokenizer, int(padding)


def _filled(rows: list[list[int]], length: int, padding: int) -> Tensor:
    x = torch.full((len(rows), length), padding, dtype=torch.int64)
    for row, ids in zip(x, rows, strict=True):
        row[: len(ids)] = torch.tensor(ids, dtype=torch.int64)
    return x
