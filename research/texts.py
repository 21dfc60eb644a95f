"""Texts: a set of two classes, and networks to train from scratch; named in a spec as ``research.texts:NAME``.

Tokens are MiniLM's, at most 24 of a text. Each network has an embedding of its own, and takes the largest value of each feature
over the text.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from research.finetuning import TOKENS, few_texts, tokens

WORDS, WIDTH, WINDOWS = 30_522, 128, (3, 4, 5)  # windows as of Kim (2014)


class Network(nn.Module):
    def __init__(self, body: nn.Module, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.words, self.body = nn.Embedding(WORDS, WIDTH, padding_idx=0), body
        self.classifier = nn.Linear(num_features, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        empty = tokens == 0
        states = self.body(self.words(tokens), empty).masked_fill(empty[..., None], -1e4)
        logits: Tensor = self.classifier(states.amax(1))
        return logits


class _Convolved(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(WIDTH, width, k, padding=k // 2) for k in WINDOWS])

    def forward(self, x: Tensor, empty: Tensor) -> Tensor:
        return torch.cat([layer(x.mT)[..., : x.shape[1]] for layer in self.layers], 1).relu().mT


class _Recurrent(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, width, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, empty: Tensor) -> Tensor:
        states: Tensor = self.lstm(x)[0]
        return states


class _Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 2 * WIDTH, 0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), False)

    def forward(self, x: Tensor, empty: Tensor) -> Tensor:
        states: Tensor = self.layers(x + self.places[: x.shape[1]], src_key_padding_mask=empty)
        return states


def cnn(num_classes: int, in_channels: int) -> nn.Module:
    """Convolutions over 3, 4 and 5 tokens, M = 300."""
    return Network(_Convolved(100), 300, num_classes)


def lstm(num_classes: int, in_channels: int) -> nn.Module:
    """An LSTM in both directions, M = 256."""
    return Network(_Recurrent(128), 256, num_classes)


def transformer(num_classes: int, in_channels: int) -> nn.Module:
    """Two layers of attention, M = 128, without dropout."""
    return Network(_Attending(), WIDTH, num_classes)


movies = partial(tokens, "movies")
movies_few = partial(few_texts, "movies")  # as many as the other sets of fine-tuning have
banking77 = partial(tokens, "banking77")
clinc150 = partial(tokens, "clinc150")
