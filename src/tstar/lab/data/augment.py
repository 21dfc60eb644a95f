"""Augmentation of whole batches, driven by a generator of your own, on the batch's device.

Random crop, horizontal flip and rotation of images; jitter, amplitude and shift of signals; nothing
for vectors, text and tokens. One interpolation does all of an image's changes at once. Standardize
first and augment then: what moves in from outside the image is 0, which is then the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.lab.data.dataset import Domain

# A mirrored digit, letter or traffic sign is another one, or none. Matched at the name's start.
NO_FLIP = ("digits", "gtsrb", "mnist", "emnist", "kmnist", "qmnist", "usps", "svhn")
# Samples measured at once for the standardization; fewer if they exceed 64×64 pixels.
_TOGETHER, _SMALL = 4096, 3 * 64 * 64


def augmentation(
    name: str,
    domain: Domain,
    padding: int | None = None,
    flip: bool | None = None,
    rotation: float = 15.0,
) -> Callable[[Tensor, torch.Generator], Tensor] | None:
    """What ``f(batch, generator)`` does to a data set's batches; ``None`` for nothing.

    The paper's for images: ``padding`` pixels are added on each side before a random crop (an
    eighth of the width by default); ``flip`` with probability ½, by default unless a mirrored image
    is another class (``NO_FLIP``); ``rotation`` by up to so many degrees. Signals: Gaussian jitter
    of 0.05, an amplitude from U(1 ± 0.1), a circular shift by up to a twentieth.
    """
    if domain == "signal":
        return augment_signals
    if domain != "image":
        return None
    flip = not name.lower().rpartition("/")[2].startswith(NO_FLIP) if flip is None else flip
    return lambda x, generator: augment_images(
        x, generator, x.shape[-1] // 8 if padding is None else padding, flip, rotation
    )


def augment_images(
    x: Tensor, generator: torch.Generator, padding: int, flip: bool, rotation: float
) -> Tensor:
    """Crop, flip and rotate N×C×H×W floats, each sample differently; 0 comes in from outside.

    Output pixel p shows the input at R·F·p + t, p counted from the image's center, with
    F = diag(±1, 1) the flip, R the rotation by an angle from U(±rotation), t whole pixels from
    −padding to padding. Without rotation every value is copied unchanged; with it, values are
    interpolated bilinearly.
    """
    if not (padding or flip or rotation):
        return x
    count = len(x)
    # Always drawn, in this order: the stream does not depend on which changes are switched on.
    source = generator.device
    angle = (torch.rand(count, generator=generator, device=source) * 2 - 1) * math.radians(rotation)
    offsets = torch.randint(-padding, padding + 1, (2, count), generator=generator, device=source)
    mirrored = torch.rand(count, generator=generator, device=source) < (0.5 if flip else 0.0)
    angle, offsets, mirrored = (v.to(x.device) for v in (angle, offsets, mirrored))
    if not rotation:
        return _shift_and_flip(x, offsets, mirrored, padding)
    return _warp(x, angle, offsets, mirrored)


def _warp(x: Tensor, angle: Tensor, offsets: Tensor, mirrored: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    sign = 1 - 2 * mirrored.to(x.dtype)
    cosine, sine = angle.cos(), angle.sin()
    # affine_grid counts in half-widths and half-heights, so mixed terms carry the aspect ratio.
    across = torch.stack([cosine * sign, -sine * (height / width), offsets[0] * (2 / width)], 1)
    down = torch.stack([sine * sign * (width / height), cosine, offsets[1] * (2 / height)], 1)
    theta = torch.stack([across, down], 1)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def _shift_and_flip(x: Tensor, offsets: Tensor, mirrored: Tensor, padding: int) -> Tensor:
    count, channels, height, width = x.shape
    padded = F.pad(x, [padding] * 4)
    columns = torch.arange(width, device=x.device).expand(count, width)
    columns = torch.where(mirrored[:, None], width - 1 - columns, columns)
    columns = columns + (offsets[0] + padding)[:, None]
    rows = torch.arange(height, device=x.device) + (offsets[1] + padding)[:, None]
    rows = rows[:, None, :, None].expand(count, channels, height, padded.shape[-1])
    return padded.gather(2, rows).gather(
        3, columns[:, None, None, :].expand(count, channels, height, width)
    )


def augment_signals(
    x: Tensor,
    generator: torch.Generator,
    jitter: float = 0.05,
    scale: float = 0.1,
    shift: float = 0.05,
) -> Tensor:
    """Shift, scale and jitter N×C×L floats: x'[l] = a·x[(l + s) mod L] + jitter·n[l].

    a from U(1 ± scale) and s from the whole numbers up to ±shift·L, one per sample; n normal.
    """
    count, channels, length = x.shape
    source = generator.device
    most = int(shift * length)
    steps = torch.randint(-most, most + 1, (count,), generator=generator, device=source)
    factor = 1 + scale * (torch.rand(count, generator=generator, device=source) * 2 - 1)
    places = (torch.arange(length, device=x.device) + steps.to(x.device)[:, None]) % length
    x = x.gather(2, places[:, None, :].expand(count, channels, length))
    noise = torch.randn(x.shape, generator=generator, device=source)
    return x * factor.to(x.device)[:, None, None] + jitter * noise.to(x.device)


def standardizer(x_train: Any, domain: Domain | None = None) -> Standardizer:
    """The map (x − mean)/std with one mean and std per channel, measured on the training samples.

    ``x_train`` is a tensor, or anything that gives slices of one: it is read in bounded parts.
    Images and signals are measured over samples and positions. Vectors have one mean and std per
    dimension; text (tf–idf, whose zeros mean something) is left as it is. A channel that does not
    vary is only centered.
    """
    if domain == "text":
        return Standardizer(torch.zeros(x_train.shape[1]), torch.ones(x_train.shape[1]))
    positions = [d for d in range(len(x_train.shape)) if d != 1]
    spread = [1] * (len(x_train.shape) - 2)
    values_each = math.prod(x_train.shape[1:])
    fewer = max(1, _TOGETHER * _SMALL // 8 // values_each)
    together = _TOGETHER if values_each <= _SMALL else fewer
    count, total = 0, torch.zeros(x_train.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    shift = x_train[:1].double().mean(positions)  # near the mean: no cancellation in the squares
    for start in range(0, len(x_train), together):
        values = x_train[start : start + together].to(torch.float64, copy=True)
        values -= shift.view(-1, *spread)  # in place: a worker's memory is that of one such part
        count += values.numel() // values.shape[1]
        total += values.sum(positions)
        squares += values.square_().sum(positions)
    mean = total / count
    std = (squares / count - mean.square()).clamp_min(0).sqrt()
    std[std < 1e-8] = 1.0
    return Standardizer((mean + shift).float(), std.float())


class Standardizer(nn.Module):
    """(x − mean)/std as a module: moves with ``.to()``, takes uint8 or floats, gives float32."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor, std: Tensor):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: Tensor) -> Tensor:
        shape = [1, -1] + [1] * (x.ndim - 2)
        return (x.to(self.mean.dtype) - self.mean.view(shape)) / self.std.view(shape)
