"""The kinds of head, each in the smallest network that has it."""

from typing import ClassVar

import torch
from torch import nn

from .contract import CLASSES, Contract


class Dictionary(nn.Module):
    """A dict of outputs, with the logits among them."""

    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(6, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        h = self.body(x).relu()
        return {"logits": self.out(h), "features": h}


class Tagger(nn.Module):
    """Logits of shape (B, L, K)."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, CLASSES)

    def forward(self, ids):
        return self.out(self.words(ids))


class Auxiliary(nn.Module):
    """A second classifier in training, as in Inception."""

    def __init__(self):
        super().__init__()
        self.body, self.aux, self.fc = nn.Linear(6, 8), nn.Linear(6, CLASSES), nn.Linear(8, CLASSES)

    def forward(self, x):
        logits = self.fc(self.body(x).relu())
        return (logits, self.aux(x)) if self.training else logits


class DeclaresOne(nn.Module):
    """Declares one head as timm's models do, and adds another to it, as VOLO does."""

    num_classes = CLASSES

    def __init__(self):
        super().__init__()
        self.body, self.aux, self.head = (
            nn.Linear(6, 8),
            nn.Linear(8, CLASSES),
            nn.Linear(8, CLASSES),
        )

    def get_classifier(self):
        return self.head

    def forward(self, x):
        h = self.body(x).relu()
        return (self.head(h) + self.aux(h)) / 2


def mlp_head():
    return nn.Sequential(
        nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, CLASSES)
    )  # fmt: skip


def conv_head(kind, pool):
    return lambda: nn.Sequential(
        kind(3, 8, 3), nn.ReLU(), kind(8, CLASSES, 1), pool(1), nn.Flatten()
    )


def norm_before():
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, CLASSES))


def vectors():
    return torch.randn(8, 6)


class TestKindsOfHead(Contract):
    cases: ClassVar = {
        "after an MLP and dropout": (mlp_head, vectors, "5", 8),
        "after a layer norm": (norm_before, vectors, "2", 8),
        "1x1 convolution": (
            conv_head(nn.Conv2d, nn.AdaptiveAvgPool2d), lambda: torch.randn(4, 3, 8, 8), "2", 8,
        ),
        "1x1 convolution over time": (
            conv_head(nn.Conv1d, nn.AdaptiveAvgPool1d), lambda: torch.randn(4, 3, 9), "2", 8,
        ),
        "dict": (Dictionary, vectors, "out", 8),
        "every token": (Tagger, lambda: torch.randint(20, (3, 7)), "out", 8),
        "one of two declared": (DeclaresOne, vectors, ["head", "aux"], 8),
        "auxiliary": (Auxiliary, vectors, "fc", 8),
    }  # fmt: skip
