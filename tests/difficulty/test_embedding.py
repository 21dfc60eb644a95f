"""Vectors from a function or a module in place of pixels."""

import numpy as np
import pytest
import torch
from PIL import Image

from tests.difficulty.helpers import Pairs
from tstar.difficulty import csg
from tstar.errors import TstarError


def test_embed_takes_functions_and_modules_and_leaves_modes_alone(images):
    x, y = images
    module = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.9),
        torch.nn.BatchNorm1d(12),
    )
    module.train()
    module[3].eval()
    result = csg(x, y, embed=module, samples=20)
    assert [m.training for m in module] == [True, True, True, False]
    assert csg(x, y, embed=module, samples=20).value == result.value
    means = x.reshape(90, 2, 16, 2, 16, 3).mean(axis=(2, 4)).transpose(0, 3, 1, 2).reshape(90, -1)
    by_hand = csg(means / 255 / np.sqrt(1 + 1e-5), y, samples=20)
    assert result.value == pytest.approx(by_hand.value, abs=1e-4)
    shapes = []
    csg(
        Pairs([Image.fromarray(i) for i in x], y),
        embed=lambda b: shapes.append(b.shape) or b.mean((2, 3)),
    )
    assert shapes[0] == (64, 3, 32, 32)
    assert sum(shape[0] for shape in shapes) == 90
    with pytest.raises(TstarError, match="one vector"):
        csg(x, y, embed=lambda batch: batch.mean())


def test_embed_sees_images_of_mixed_sizes(images):
    x, y = images
    mixed = [Image.fromarray(i).resize((20 + n % 2, 20)) for n, i in enumerate(x)]
    assert csg(Pairs(mixed, y), embed=lambda b: b.mean((2, 3)), samples=20).num_samples == 90
