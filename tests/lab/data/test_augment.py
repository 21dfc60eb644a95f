"""Augmentation: what each change does, exactly where it can be exact, and that only the generator decides."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tstar.lab.data.augment import (
    _warp,
    augment_images,
    augment_signals,
    augmentation,
    standardizer,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count=16, height=8, width=8):
    return torch.randn(count, 3, height, width, generator=generator(9))


@pytest.mark.parametrize(("height", "width"), [(8, 8), (6, 10)])
def test_crop_and_flip_give_windows_of_the_padded_image(height, width):
    x = images(64, height, width)
    out = augment_images(x, generator(), 2, True, 0)
    padded = F.pad(x, [2, 2, 2, 2])
    seen = set()
    for original, changed in zip(padded, out, strict=True):
        found = []
        for top in range(5):
            for left in range(5):
                window = original[:, top : top + height, left : left + width]
                found += [
                    (top, left, f)
                    for f, w in enumerate((window, window.flip(2)))
                    if torch.equal(w, changed)
                ]
        assert len(found) == 1
        seen.add(found[0])
    assert {s[0] for s in seen} == {s[1] for s in seen} == set(range(5))
    assert {s[2] for s in seen} == {0, 1}


def test_rotation_by_a_right_angle_is_exact():
    """At 90° every pixel center falls on one: rot90 is the reference."""
    x = images()
    nothing = torch.zeros(2, len(x)), torch.zeros(len(x), dtype=torch.bool)
    out = _warp(x, torch.full((len(x),), math.pi / 2), *nothing)
    assert torch.allclose(out, torch.rot90(x, 1, (2, 3)), atol=1e-5)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("degrees", [0.0, 10.0, -33.0])
def test_warp_against_scipy(degrees, mirror):
    """scipy's affine_transform: output pixel p, in (row, column) from the corner, shows A·p + b."""
    ndimage = pytest.importorskip("scipy.ndimage")
    height, width = 9, 14
    x = images(1, height, width)
    angle, across, down = math.radians(degrees), 2, -1
    out = _warp(x, torch.tensor([angle]), torch.tensor([[across], [down]]), torch.tensor([mirror]))
    sign = -1 if mirror else 1
    matrix = torch.tensor(
        [[math.cos(angle), math.sin(angle) * sign], [-math.sin(angle), math.cos(angle) * sign]],
        dtype=torch.float64,
    )
    center = torch.tensor([(height - 1) / 2, (width - 1) / 2], dtype=torch.float64)
    offset = center + torch.tensor([down, across]) - matrix @ center
    for channel in range(3):
        expected = ndimage.affine_transform(
            x[0, channel].double().numpy(),
            matrix.numpy(),
            offset.numpy(),
            order=1,
            mode="grid-constant",
        )
        assert out[0, channel].double().numpy() == pytest.approx(expected, abs=1e-4)


def test_the_two_paths_agree_where_nothing_is_rotated():
    """A rotation too small to see: the interpolated path must give the copied values."""
    x = images(64)
    exact = augment_images(x, generator(3), 2, True, 0.0)
    warped = augment_images(x, generator(3), 2, True, 1e-6)
    assert torch.allclose(exact, warped, atol=1e-4)


def test_angles_fill_the_range_and_no_more():
    """A dot at distance r of the center moves by an angle that can be read off its new place."""
    x = torch.zeros(400, 1, 65, 65)
    x[:, :, 32, 62:65] = 1.0
    out = augment_images(x, generator(), 0, False, 15.0)
    columns = torch.arange(65.0) - 32
    mass = out.sum((1, 2, 3))
    right = (out.sum((1, 2)) * columns).sum(1) / mass
    below = (out.sum((1, 3)) * columns).sum(1) / mass
    angles = torch.rad2deg(torch.atan2(below, right))
    assert angles.abs().max() < 15.5
    assert angles.max() > 14
    assert angles.min() < -14


def test_the_generator_alone_decides():
    x = images()
    augment = augmentation("toy", "image")
    state = torch.get_rng_state()
    first = augment(x, generator(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, augment(x, generator(1)))
    assert not torch.equal(first, augment(x, generator(2)))
    assert torch.equal(x, images())  # the input is not written to


def test_vectors_texts_and_tokens_pass_unchanged():
    assert augmentation("toy", "vector") is augmentation("toy", "text") is None
    assert augmentation("toy", "tokens") is None


def test_signals_shift_in_a_circle_within_the_range():
    x = torch.randn(200, 3, 40, generator=generator())
    out = augment_signals(x, generator(), 0, 0, 0.1)
    steps = set()
    for before, after in zip(x, out, strict=True):
        found = [s for s in range(-20, 20) if torch.equal(before.roll(-s, 1), after)]
        assert len(found) == 1
        steps.add(found[0])
    assert steps == set(range(-4, 5))


def test_signals_scale_and_jitter():
    x = torch.randn(2000, 2, 16, generator=generator())
    scaled = augment_signals(x, generator(), 0, 0.2, 0)
    factors = (scaled / x).flatten(1)
    assert torch.allclose(factors, factors[:, :1].expand_as(factors), rtol=1e-3)
    assert factors.min() >= 0.8
    assert factors.max() <= 1.2001
    assert factors.std().item() == pytest.approx(0.4 / math.sqrt(12), rel=0.05)
    noise = augment_signals(x, generator(), 0.3, 0, 0) - x
    assert noise.std().item() == pytest.approx(0.3, rel=0.02)


def test_defaults_by_name():
    """A flip where it is the same class, a crop of an eighth, 15 degrees."""
    x = images()

    def of(name, **given):
        return augmentation(name, "image", **given)(x, generator(4))

    for name in ("cifar10_32", "fashion-mnist"):
        assert torch.equal(of(name), augment_images(x, generator(4), 1, True, 15.0))
    for name in ("digits", "gtsrb_32", "GTSRB", "sub/gtsrb_32"):
        assert torch.equal(of(name), augment_images(x, generator(4), 1, False, 15.0))
    assert torch.equal(of("digits", flip=True), of("cifar10"))
    assert not torch.equal(of("digits"), of("cifar10"))


@pytest.mark.parametrize("shape", [(5000, 3, 4, 4), (300, 9, 12), (300, 20)])
def test_standardized_training_samples_have_mean_0_and_std_1(shape):
    x = torch.rand(shape, generator=generator()) * 7 + 1000  # far from 0: cancellation would show
    out = standardizer(x)(x).double()
    over = [d for d in range(len(shape)) if d != 1]
    assert out.mean(over).abs().max() < 1e-3
    assert out.std(over, correction=0).sub(1).abs().max() < 1e-3
    reference = (x.double() - x.double().mean(over, keepdim=True)) / x.double().std(
        over, correction=0, keepdim=True
    )
    assert torch.allclose(out, reference, atol=1e-3)


def test_standardizing_in_small_parts_gives_the_same(monkeypatch):
    from tstar.lab.data import augment

    x = torch.randint(0, 256, (50, 3, 8, 8), dtype=torch.uint8)
    whole = augment.standardizer(x)
    monkeypatch.setattr(augment, "_SMALL", 100)
    monkeypatch.setattr(augment, "_TOGETHER", 20)
    parts = augment.standardizer(x)
    assert torch.allclose(whole.mean, parts.mean)
    assert torch.allclose(whole.std, parts.std)
    assert np.isclose(float(whole.mean[0]), float(x[:, 0].float().mean()), rtol=1e-5)
