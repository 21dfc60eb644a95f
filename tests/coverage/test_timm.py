"""timm's families: its own test models, and those with two heads."""

from functools import partial
from typing import ClassVar

import pytest
import torch

from .contract import CLASSES, Contract

timm = pytest.importorskip("timm")


def images(size=32, batch=2):
    return lambda: torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0))


def get(name, **options):
    return partial(timm.create_model, name, num_classes=CLASSES, **options)


class TestTimm(Contract):
    cases: ClassVar = {
        "resnet": (get("test_resnet"), images(), "fc", 96),
        "vit": (get("test_vit", img_size=32), images(), "head", 64),
        "convnext": (get("test_convnext"), images(), "head.fc", 64),
        "efficientnet": (get("test_efficientnet"), images(), "classifier", 256),
        "mlp head": (get("test_vit3", img_size=32), images(), "head", 96),
        "deit distilled": (
            get("deit_tiny_distilled_patch16_224", img_size=32, depth=1), images(), ["head", "head_dist"], 192,
        ),
        "levit": (
            get("levit_128s", img_size=64), images(64), ["head.linear", "head_dist.linear"], 384,
        ),
    }  # fmt: skip
