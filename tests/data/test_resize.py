"""Area averaging against an independent way to compute it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tstar import TstarError
from tstar.data.resize import area_resize, overlap


def random_images(*shape: int) -> torch.Tensor:
    return torch.randint(
        0, 256, shape, generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_equals_repeating_each_pixel_and_averaging_blocks(
    height: int, width: int, size: int
) -> None:
    """Repeat every pixel `size` times: the new pixels are then blocks of whole old ones."""
    images = random_images(2, 3, height, width)
    fine = images.double().repeat_interleave(size, -1).repeat_interleave(size, -2)
    exact = fine.view(2, 3, size, height, size, width).mean((3, 5))
    out = area_resize(images, size)
    assert out.dtype == torch.uint8
    assert torch.equal(out.double(), exact.round()) or (out - exact).abs().max() <= 0.5 + 1e-12
    assert torch.equal(area_resize(images[:1], size), out[:1])


def test_a_whole_factor_is_the_mean_of_blocks() -> None:
    images = random_images(4, 3, 32, 32)
    blocks = images.view(4, 3, 16, 2, 16, 2).float().mean((3, 5))
    assert torch.equal(area_resize(images, 16), blocks.round().to(torch.uint8))


def test_overlaps_are_whole_and_sum_to_the_old_length() -> None:
    for old in (1, 7, 28, 500):
        for new in (1, 8, 32, 33):
            shared = overlap(old, new)
            assert torch.equal(shared, shared.round())
            assert shared.sum(1).tolist() == [old] * new
            assert shared.sum(0).tolist() == [new] * old


def test_same_size_and_constant_images_are_unchanged() -> None:
    images = random_images(2, 3, 9, 9)
    assert area_resize(images, 9) is images
    full = torch.full((1, 3, 37, 53), 255, dtype=torch.uint8)
    assert torch.equal(area_resize(full, 8), torch.full((1, 3, 8, 8), 255, dtype=torch.uint8))


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    images = random_images(7, 3, 10, 6)
    whole = area_resize(images, 4)
    monkeypatch.setattr("tstar.data.resize._CHUNK", 100)
    assert torch.equal(area_resize(images, 4), whole)


@pytest.mark.parametrize("size", [0, -3, 2.5, True])
def test_sizes_that_are_none(size: object) -> None:
    with pytest.raises(TstarError, match=r"size must be a (whole )?number"):
        area_resize(random_images(1, 3, 4, 4), size)  # type: ignore[arg-type]
