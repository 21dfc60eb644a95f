"""Tiny copies of official layouts are made of images of one flat color that tells label and sample."""

from pathlib import Path

import pytest
import torch


class Paint:
    """Writes such images, and reads label and sample back from pixels."""

    def write(self, path: Path, label: int, sample: int, size: tuple[int, int] = (12, 12)) -> None:
        from PIL import Image

        path.parent.mkdir(parents=True, exist_ok=True)
        color = (20 + 30 * label, 10 * sample, 100)
        # Flat gray-free colors survive JPEG within a unit or two without chroma subsampling.
        options = (
            {"quality": 100, "subsampling": 0} if path.suffix.lower() in (".jpg", ".jpeg") else {}
        )
        Image.new("RGB", size, color).save(path, **options)

    def labels(self, x: torch.Tensor) -> list[int]:
        return [round((red.item() - 20) / 30) for red in x[:, 0].float().mean((1, 2))]

    def samples(self, x: torch.Tensor) -> list[int]:
        return [round(green.item() / 10) for green in x[:, 1].float().mean((1, 2))]


@pytest.fixture
def paint() -> Paint:
    pytest.importorskip("PIL")
    return Paint()
