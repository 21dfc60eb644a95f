"""Pretrained networks and their data of the fresh test: named in a spec as ``research.finetuning:NAME``.

    python benchmarks/pretrained_weights.py DATA     # the weights; TSTAR_DATA must name the same folder

MobileNetV2 (ImageNet, M = 1280) on images of 48 pixels; MiniLM (sentences, M = 384) on at most 24 tokens of a text. The
data are small, so that a run takes half a minute of one core.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import nn

from tstar.lab.data import DataSet, load, tokenize
from tstar.lab.data.loading import default_root
from tstar.lab.models import build, zoo
from tstar.lab.sweep.materials import load_weights
from tstar.output_layer import find_head

PIXELS, TOKENS = 48, 24
MOST = (2500, 1000)  # samples of a data set, training and test


def mobilenet(num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    """MobileNetV2 with a new output layer; channels last, which a CPU convolves in half the time."""
    model = zoo.build("torchvision", "mobilenet_v2", num_classes, None, in_channels, False)
    if pretrained:
        load_weights(model, default_root() / "mobilenet_v2.pt")
    return cast(nn.Module, model.to(memory_format=torch.channels_last))  # type: ignore[call-overload]


def minilm(num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    """MiniLM with a new output layer, every layer trained."""
    folder = str(default_root() / "minilm")
    return zoo.build("transformers", folder, num_classes, None, in_channels, pretrained)


def frozen_vgg9(num_classes: int, in_channels: int, num_features: int) -> nn.Module:
    return _frozen("vgg9", num_classes, in_channels, num_features)


def frozen_vit4(num_classes: int, in_channels: int, num_features: int) -> nn.Module:
    return _frozen("vit4", num_classes, in_channels, num_features)


def _frozen(name: str, num_classes: int, in_channels: int, num_features: int) -> nn.Module:
    """A network of which the output layer alone is trained."""
    model = build(name, num_classes, in_channels=in_channels, num_features=num_features)
    model.requires_grad_(False)
    find_head(model).layer.requires_grad_(True)
    return model


def _images(name: str, root: str, size: int | None = None) -> DataSet:
    return _thinned(load(name, root=root, size=size or PIXELS))


def tokens(name: str, root: str, size: int | None = None) -> DataSet:
    return tokenize(load(name, root=root), str(Path(root) / "minilm"), limit=size or TOKENS)


def few_texts(name: str, root: str, size: int | None = None) -> DataSet:
    return _thinned(tokens(name, root, size))


def _thinned(data: DataSet) -> DataSet:
    """As many samples as ``MOST`` says, always the same ones."""
    parts = {}
    for part, most in zip(("train", "test"), MOST, strict=True):
        x, y = getattr(data, f"x_{part}"), getattr(data, f"y_{part}")
        chosen = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))[:most]
        parts |= {f"x_{part}": x[chosen], f"y_{part}": y[chosen]}
    return replace(data, **parts, texts=None)


caltech101_96 = partial(_images, "caltech101_96")
flowers102_96 = partial(_images, "flowers102_96")
cifar10_32 = partial(_images, "cifar10_32")
gtsrb_32 = partial(_images, "gtsrb_32")
banking77 = partial(few_texts, "banking77")
clinc150 = partial(few_texts, "clinc150")
