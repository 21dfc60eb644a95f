"""Augmentation of whole batches, driven by a generator of your own, on the batch's device.

Random crop, horizontal flip and rotation of images; jitter, amplitude and shift of signals; nothing
for vectors, text and tokens. One interpolation does all of an image's changes at once. Standardize first
and augment then: what moves in from outside the image is 0, which is then the mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.data.validation import DOMAINS, Domain
from tstar.errors import unknown
from tstar.numbers import positive

# A mirrored digit, letter or traffic sign is another one, or none. Matched at the name's start.
NO_FLIP = ("digits", "gtsrb", "mnist", "emnist", "kmnist", "qmnist", "usps", "svhn")
# Samples that are measured at once for the standardization: so many of up to 64×64 pixels, fewer of larger ones.
_TOGETHER, _SMALL = 4096, 3 * 64 * 64


@dataclass(frozen=True)
class Augment:
    """Augmentation of one domain's batches: ``augment(batch, generator)`` gives a float32 batch.

    Images: ``padding`` pixels on each side, of which a random crop is taken (``None``: an eighth of
    the width, the customary 4 at 32 pixels); ``flip`` with probability ½; ``rotation`` by up to so
    many degrees. Signals: Gaussian ``jitter`` of this standard deviation, amplitude ``scale`` a
    sample from U(1 ± scale), and circular ``shift`` by up to this part of the length. Everything 0
    (or ``False``) leaves the batch as it is.
    """

    domain: Domain
    padding: int | None = None
    flip: bool = True
    rotation: float = 15.0
    jitter: float = 0.05
    scale: float = 0.1
    shift: float = 0.05

    def __post_init__(self) -> None:
        if self.domain not in DOMAINS:
            raise unknown("domain", self.domain, DOMAINS)
        for field in ("padding", "rotation", "jitter", "scale", "shift"):
            most = {"rotation": 180.0, "shift": 1.0}.get(field)
            if (value := getattr(self, field)) is not None:
                positive(field, value, zero=True, most=most)

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        if self.domain == "tokens":
            return batch  # ids, not quantities
        x = batch if batch.dtype == torch.float32 else batch.float()
        if self.domain == "image":
            padding = x.shape[-1] // 8 if self.padding is None else self.padding
            return augment_images(x, generator, padding, self.flip, self.rotation)
        if self.domain == "signal":
            return augment_signals(x, generator, self.jitter, self.scale, self.shift)
        return x


def default(name: str, domain: Domain, **fields: Any) -> Augment:
    """The augmentation a data set gets unless a study says otherwise; ``fields`` replace its values.

    The paper's crop, flip and rotation for images, without the flip where a mirrored image is
    another class (``NO_FLIP``) in the set, or in any of joined sets.
    """
    sets = (one.rpartition("/")[2] for one in name.lower().split("+"))
    flip = not any(one.startswith(NO_FLIP) for one in sets)
    return Augment(domain, **{"flip": flip, **fields})


def augment_images(
    x: Tensor, generator: torch.Generator, padding: int, flip: bool, rotation: float
) -> Tensor:
    """Crop, flip and rotate N×C×H×W floats, each sample differently; 0 comes in from outside.

    Output pixel p shows the input at R·F·p + t, p counted from the image's center, with F = diag(±1, 1)
    the flip, R the rotation by an angle from U(±rotation), t whole pixels from −padding to padding.
    Without rotation every value is copied unchanged; with it, values are interpolated bilinearly.
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
    theta = torch.stack(
        [
            torch.stack([cosine * sign, -sine * (height / width), offsets[0] * (2 / width)], 1),
            torch.stack([sine * sign * (width / height), cosine, offsets[1] * (2 / height)], 1),
        ],
        1,
    )
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
    x: Tensor, generator: torch.Generator, jitter: float, scale: float, shift: float
) -> Tensor:
    """Shift, scale and jitter N×C×L floats: x'[l] = a·x[(l + s) mod L] + jitter·n[l].

    a from U(1 ± scale) and s from the whole numbers up to ±shift·L, one per sample; n standard normal.
    """
    count, channels, length = x.shape
    source = generator.device
    most = int(shift * length)
    steps = torch.randint(-most, most + 1, (count,), generator=generator, device=source)
    factor = 1 + scale * (torch.rand(count, generator=generator, device=source) * 2 - 1)
    if most:
        places = (torch.arange(length, device=x.device) + steps.to(x.device)[:, None]) % length
        x = x.gather(2, places[:, None, :].expand(count, channels, length))
    if scale:
        x = x * factor.to(x.device)[:, None, None]
    if jitter:
        noise = torch.randn(x.shape, generator=generator, device=source)
        x = x + jitter * noise.to(x.device)
    return x


def standardizer(x_train: Any, domain: Domain | None = None) -> Standardizer:
    """The map (x − mean)/std with one mean and std per channel, measured on the training samples.

    ``x_train`` is a tensor, or anything that gives slices of one: it is read in parts of bounded size.
    Images and signals are measured over samples and positions. Vectors have one mean and std per
    dimension; text (tf–idf, whose zeros mean something) is left as it is. A channel that does not
    vary is only centered.
    """
    if domain == "text":
        return Standardizer(torch.zeros(x_train.shape[1]), torch.ones(x_train.shape[1]))
    positions = [d for d in range(len(x_train.shape)) if d != 1]
    spread = [1] * (len(x_train.shape) - 2)
    values_each = math.prod(x_train.shape[1:])
    together = (
        _TOGETHER if values_each <= _SMALL else max(1, _TOGETHER * _SMALL // 8 // values_each)
    )
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
