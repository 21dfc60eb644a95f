"""Fashion-MNIST, from idx files written by hand."""

import struct

import numpy as np
import pytest

pytest.importorskip("torchvision")

from tstar.lab.data import load

FILES = [f"{p}-{k}-ubyte" for p in ("train", "t10k") for k in ("images-idx3", "labels-idx1")]


def idx(array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (20, 28, 28))
    labels = np.arange(20) % 10
    for name in FILES:
        (folder / name).write_bytes(idx(images if "images" in name else labels))
    return images, labels


def test_the_files_of_torchvision_s_layout(tmp_path):
    images, labels = write(tmp_path / "FashionMNIST" / "raw")
    data = load("fashion-mnist", root=tmp_path)
    assert np.array_equal(data.x_train[:, 0].numpy(), images)
    assert np.array_equal(data.y_test.numpy(), labels)
    assert data.classes[9] == "Ankle boot"
    assert load("fashion-mnist", root=tmp_path, size=14).x_test.shape == (20, 1, 14, 14)
