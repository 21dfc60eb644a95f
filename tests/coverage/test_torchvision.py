"""torchvision's families, on the smallest images that they take."""

from functools import partial
from typing import ClassVar

import pytest
import torch

from .contract import CLASSES, Contract

models = pytest.importorskip("torchvision.models")


def images(size=32, batch=2):
    return lambda: torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(0))


def get(name, **options):
    return partial(models.get_model, name, num_classes=CLASSES, weights=None, **options)


def vit():
    return models.VisionTransformer(32, 16, 2, 2, 24, 48, num_classes=CLASSES)


def swin():
    return models.SwinTransformer([4, 4], 24, [1, 1], [2, 2], [4, 4], num_classes=CLASSES)


def convnext():
    blocks = [models.convnext.CNBlockConfig(16, 24, 1), models.convnext.CNBlockConfig(24, None, 1)]
    return models.ConvNeXt(blocks, num_classes=CLASSES)


@pytest.mark.filterwarnings("ignore:The default weight initialization")
class TestTorchvision(Contract):
    cases: ClassVar = {
        "squeezenet": (get("squeezenet1_1"), images(), "classifier.1", 512),
        "mobilenet": (get("mobilenet_v3_small"), images(), "classifier.3", 1024),
        "resnet": (get("resnet18"), images(), "fc", 512),
        "vit": (vit, images(), "heads.head", 24),
        "swin": (swin, images(), "head", 48),
        "convnext": (convnext, images(), "classifier.2", 24),
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The default weight initialization")
class TestTorchvisionLarge(Contract):
    cases: ClassVar = {
        "googlenet": (
            get("googlenet", aux_logits=True, init_weights=False),
            images(64),
            "fc",
            1024,
        ),
        "densenet": (get("densenet121"), images(), "classifier", 1024),
        "vgg": (get("vgg11", init_weights=False), images(), "classifier.6", 4096),
    }
