"""How images become arrays of pixels, channels first."""

import numpy as np
import pytest
from PIL import Image

from tstar.data.pixels import channels_first, from_pil, is_image, is_pil, pixels
from tstar.errors import TstarError

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (2, 5, 4, 3), dtype=np.uint8)


def test_bytes_unit_floats_and_whole_numbers_are_the_same_pixels():
    expected = BYTES.transpose(0, 3, 1, 2)
    for given in (BYTES, BYTES / 255, BYTES.astype(np.int64), (BYTES / 255).astype(np.float32)):
        found = pixels(given)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, expected)


def test_normalized_images_stay_floats_and_those_within_the_range_are_rounded():
    given = np.stack([BYTES[0] / 255 + 0.0001, BYTES[1] / 255 - 1]).astype(np.float32)
    found = pixels(given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[0], BYTES[0].transpose(2, 0, 1) / 255, atol=1e-6)
    np.testing.assert_array_equal(found[1], given[1].transpose(2, 0, 1))


def test_channels_are_seen_at_either_end():
    assert channels_first(np.zeros((2, 3, 8, 8)), False).shape == (2, 3, 8, 8)
    assert channels_first(np.zeros((2, 8, 8, 3)), True).shape == (2, 3, 8, 8)
    both = np.zeros((2, 3, 8, 4))
    assert channels_first(both, True).shape == (2, 3, 8, 4)
    assert channels_first(both, False).shape == (2, 4, 3, 8)
    with pytest.raises(TstarError, match="1, 3 or 4 channels"):
        channels_first(np.zeros((2, 8, 8, 7)), True)


def test_what_is_an_image():
    assert is_image(BYTES)
    assert is_image(np.zeros((2, 8, 8), np.int64))
    assert not is_image(np.zeros((2, 8, 8)))
    assert is_pil(Image.new("L", (2, 2)))
    assert not is_pil(BYTES)


def test_pictures_of_pil_in_every_mode():
    assert from_pil(Image.new("L", (4, 2), 7)).tolist() == [[[7] * 3] * 4] * 2
    deep = Image.fromarray(np.full((2, 2), 0x1234, np.uint16))
    assert (from_pil(deep) == 0x12).all()
    with pytest.raises(TstarError, match="8- or 16-bit, got mode 'F'"):
        from_pil(Image.new("F", (2, 2)))
