"""Folders of images."""

import numpy as np
import pytest
import torch

Image = pytest.importorskip("PIL.Image")

from tstar import TstarError  # noqa: E402
from tstar.lab.data import load, open_data  # noqa: E402


def make(folder, parts, classes="abc", suffix="png"):
    """Random images whose red tells the class."""
    random = np.random.default_rng(0)
    for part, count in parts.items():
        for label, name in enumerate(classes):
            (folder / part / name).mkdir(parents=True, exist_ok=True)
            for sample in range(count):
                pixels = random.integers(0, 256, (6, 6, 3), dtype=np.uint8)
                pixels[..., 0] = 50 * label
                Image.fromarray(pixels).save(folder / part / name / f"{sample}.{suffix}")
    return folder


def test_train_and_test_folders(tmp_path):
    make(tmp_path / "toy", {"train": 4, "test": 2})
    data = load("toy", root=tmp_path)
    assert (data.name, data.classes, data.x_train.shape) == ("toy", ("a", "b", "c"), (12, 3, 6, 6))
    assert torch.equal(data.x_train[:, 0, 0, 0].long() // 50, data.y_train)
    pixels = np.asarray(Image.open(tmp_path / "toy" / "test" / "b" / "1.png"))
    assert np.array_equal(data.x_test[3].numpy(), pixels.transpose(2, 0, 1))
    assert load(tmp_path / "toy").checksum() == data.checksum()


def test_a_validation_folder_joins_training_or_stands_in_for_test(tmp_path):
    make(tmp_path / "three", {"train": 4, "test": 2, "val": 3})
    assert len(load("three", root=tmp_path).x_train) == 21
    make(tmp_path / "two", {"train": 4, "val": 3})
    assert len(load("two", root=tmp_path).x_test) == 9


def test_a_folder_without_parts_gets_a_seeded_fifth(tmp_path):
    make(tmp_path / "toy", {".": 10})
    data = load("toy", root=tmp_path)
    assert data.y_train.bincount().tolist() == [8, 8, 8]
    assert data.y_test.bincount().tolist() == [2, 2, 2]


def test_images_of_different_sizes_need_a_size(tmp_path):
    make(tmp_path / "toy", {"train": 2, "test": 2})
    Image.new("L", (9, 5), 7).save(tmp_path / "toy" / "train" / "c" / "odd.png")
    with pytest.raises(TstarError, match=r"6×6 and 9×5 pixels; pass size="):
        load("toy", root=tmp_path)
    data = load("toy", root=tmp_path, size=4)
    assert data.x_train.shape == (7, 3, 4, 4)
    assert torch.equal(data.x_train[-1], torch.full((3, 4, 4), 7, dtype=torch.uint8))


def test_broken_and_missing_pieces(tmp_path):
    make(tmp_path / "toy", {"train": 2, "test": 2})
    broken = tmp_path / "toy" / "train" / "b" / "zz.jpg"
    broken.write_bytes(b"\xff\xd8 this is no image")
    with pytest.raises(TstarError, match=r"zz\.jpg must be a readable image"):
        load("toy", root=tmp_path)
    broken.unlink()
    (tmp_path / "toy" / "test" / "new").mkdir()
    with pytest.raises(TstarError, match="'new' does not"):
        load("toy", root=tmp_path)
    make(tmp_path / "half", {"train": 2})
    with pytest.raises(TstarError, match="neither test nor val"):
        load("half", root=tmp_path)
    make(tmp_path / "one", {"train": 2, "test": 2}, classes="a")
    with pytest.raises(TstarError, match="two or more classes, but has 1;"):
        load("one", root=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TstarError, match="two or more classes, but has 0;"):
        load("empty", root=tmp_path)


def test_images_are_found_however_deep_they_lie(tmp_path):
    make(tmp_path / "toy" / "one", {"deep": 4, "deeper/still": 4})
    make(tmp_path / "toy" / "two", {".": 8})
    (tmp_path / "toy" / "two" / ".hidden.png").touch()
    assert len(open_data(tmp_path / "toy").y) == 48


def test_a_class_without_images(tmp_path):
    make(tmp_path / "toy", {"train": 2, "test": 2})
    for file in (tmp_path / "toy" / "train" / "b").iterdir():
        file.unlink()
    with pytest.raises(TstarError, match="training part has 0, 2"):
        load("toy", root=tmp_path)
