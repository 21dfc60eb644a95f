"""idx files by hand."""

import gzip
import struct

import numpy as np
import pytest

from tstar import TstarError
from tstar.lab.data import catalogue, load

FILES = [f"{p}-{k}-ubyte" for p in ("train", "t10k") for k in ("images-idx3", "labels-idx1")]


def idx(array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write(folder, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (20, 28, 28))
    labels = np.arange(20) % 10
    for name in FILES:
        content = idx(images if "images" in name else labels)
        target = folder / (f"{name}.gz" if packed else name)
        target.write_bytes(gzip.compress(content) if packed else content)
    return images, labels


@pytest.fixture(autouse=True)
def _no_system_package(monkeypatch, tmp_path):
    folders = (*catalogue.FASHION_FOLDERS[:2], str(tmp_path / "system"))
    monkeypatch.setattr(catalogue, "FASHION_FOLDERS", folders)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("folder", ["FashionMNIST/raw", "fashion-mnist"])
def test_each_place_and_form(tmp_path, folder, packed):
    images, labels = write(tmp_path / folder, packed)
    data = load("fashion-mnist", root=tmp_path)
    assert np.array_equal(data.x_train[:, 0].numpy(), images)
    assert np.array_equal(data.y_test.numpy(), labels)
    assert data.classes[9] == "Ankle boot"
    assert load("fashion-mnist", root=tmp_path, size=14).x_test.shape == (20, 1, 14, 14)


def test_the_system_package(tmp_path):
    write(tmp_path / "system")
    assert len(load("fashion-mnist", root=tmp_path / "empty").x_train) == 20


def test_absent(tmp_path):
    with pytest.raises(TstarError, match="Debian's package dataset-fashion-mnist"):
        load("fashion-mnist", root=tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x00\x0d\x01\x00\x00\x00\x01x",
        idx(np.zeros((3, 4)))[:-1],
        idx(np.zeros((3, 4))) + b"!",
        b"\x00\x00\x08\x03\x00\x00",
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_malformed(tmp_path, content, packed):
    path = tmp_path / ("x.gz" if packed else "x")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(TstarError, match="idx file"):
        catalogue.read_idx(path)
