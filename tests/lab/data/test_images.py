"""Image files that do not fit into memory: decoded once into a file, the same numbers."""

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

from tstar import csg  # noqa: E402
from tstar.lab.data import images, load  # noqa: E402


@pytest.fixture
def both(tmp_path, monkeypatch):
    """96 images of three classes, told by their red, in sizes that differ: held, and mapped."""
    random = np.random.default_rng(0)
    for part, count in (("train", 24), ("test", 8)):
        for label, name in enumerate("abc"):
            place = tmp_path / "toy" / part / name
            place.mkdir(parents=True)
            for sample in range(count):
                pixels = random.integers(0, 256, (8 + sample % 3, 9, 3), dtype=np.uint8)
                pixels[..., 0] = 80 * label + pixels[..., 0] // 8
                Image.fromarray(pixels).save(place / f"{sample}.png")
    held, mapped = load(tmp_path / "toy", size=8), []
    original = np.memmap
    monkeypatch.setattr(images, "_PART", 7 * 3 * 8 * 8)  # a few images at a time
    monkeypatch.setenv("TSTAR_MEMORY_MB", "0")  # as the documentation has it
    monkeypatch.setattr(np, "memmap", lambda *a, **k: mapped.append(k) or original(*a, **k))
    files = load(tmp_path / "toy", size=8)
    assert [facts["shape"] for facts in mapped] == [(72, 3, 8, 8), (24, 3, 8, 8)]
    monkeypatch.undo()
    return held, files


def test_the_same_data(both):
    held, files = both
    assert held.checksum() == files.checksum()
    assert repr(held) == repr(files)
    assert float(csg(held, seed=0)) == float(csg(files, seed=0))
    assert held.subset(30, 9, seed=2).checksum() == files.subset(30, 9, seed=2).checksum()
