""".npz files: kinds of samples, kinds of labels, round trips, and what is refused."""

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.lab.data import load
from tstar.lab.data.files import from_arrays, from_function, write_npz


def arrays(shape=(4, 4, 3), dtype="uint8", **changes):
    random = np.random.default_rng(0)
    values = {
        part: (random.random((count, *shape)) * 255).astype(dtype)
        for part, count in (("x_train", 12), ("x_test", 6))
    }
    return {**values, "y_train": np.arange(12) % 3, "y_test": np.arange(6) % 3, **changes}


def save(folder, **content):
    np.savez(folder / "toy.npz", **content)
    return folder


def test_images_become_channels_first(tmp_path):
    content = arrays(classes=np.array(["a", "b", "c"]))
    data = load("toy", root=save(tmp_path, **content))
    assert (data.name, data.domain, data.classes) == ("toy", "image", ("a", "b", "c"))
    assert data.x_train.dtype == torch.uint8
    assert data.x_train[5, 2, 1, 3] == content["x_train"][5, 1, 3, 2]
    assert data.y_test.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("shape", "dtype", "domain", "channels"),
    [
        ((4, 4), "uint8", "image", 1),
        ((9, 20), "float16", "signal", 9),
        ((2, 20), "float64", "signal", 2),
        ((7,), "float32", "vector", 7),
        ((7,), "int32", "vector", 7),
    ],
)
def test_kinds_of_samples(tmp_path, shape, dtype, domain, channels):
    content = arrays(shape, dtype)
    data = load("toy", root=save(tmp_path, **content))
    assert (data.domain, data.in_channels) == (domain, channels)
    assert np.array_equal(data.x_test.numpy().ravel(), content["x_test"].astype(np.float32).ravel())


def test_labels_may_be_strings(tmp_path):
    names = np.array(["cat", "ant", "bee"])
    save(tmp_path, **arrays(y_train=names[np.arange(12) % 3], y_test=names[np.arange(6) % 3]))
    data = load("toy", root=tmp_path)
    assert data.classes == ("ant", "bee", "cat")
    assert data.y_test.tolist() == [2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("size", [None, 2])
def test_writing_and_reading_keep_the_checksum(tmp_path, size):
    data = load("toy", root=save(tmp_path, **arrays()), size=size)
    write_npz(data, tmp_path / "deeper" / "copy.npz")
    copy = load("deeper/copy", root=tmp_path)
    assert copy.checksum() == data.checksum()
    assert (copy.classes, copy.domain) == (data.classes, data.domain)


def test_size_averages_areas(tmp_path):
    content = arrays()
    small = load("toy", root=save(tmp_path, **content), size=2)
    blocks = content["x_test"].reshape(6, 2, 2, 2, 2, 3).mean((2, 4)).transpose(0, 3, 1, 2)
    assert np.abs(small.x_test.numpy() - blocks).max() <= 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x_train": np.zeros(3)}, "under known names .* but holds x_train"),
        (arrays(y_train=np.arange(12) % 3 * 2), "without gaps.* has 0, 2, 4"),
        (arrays(y_train=np.zeros(12, int)), "at least two classes"),
        (arrays(y_train=np.arange(11) % 3), "\\(11,\\) labels"),
        (arrays(y_train=np.arange(12) / 2), "whole numbers or strings"),
        (arrays(y_test=np.full(6, 8)), "label 8 is new"),
        (arrays(dtype="float32"), "uint8 .images, 0…255"),
        (arrays(shape=(3, 8, 8)), "looks like N×C×H×W"),
        (arrays(shape=(2, 2, 2, 2)), "images"),
        (arrays(x_test=np.zeros((6, 7))), "x_test .image. of N×C×H×W .* got .6, 7. of"),
        (arrays(classes=np.array(["a", "b"])), "labels 0…1 without gaps"),
        (arrays((5,), "float32", x_train=np.full((12, 5), np.nan)), "NaN"),
        (arrays(x_train=np.array([b"?"] * 12)), "must be N×H×W×C"),
        (arrays(x_train=np.array([{"a": 1}] * 12, dtype=object)), "plain arrays"),  # pickled
        (arrays(y_train=np.array(["a", "b"] * 6), y_test=np.array(["z"] * 6)), "'z' does not"),
    ],
)
def test_refused(tmp_path, content, message):
    with pytest.raises(TstarError, match=message):
        load("toy", root=save(tmp_path, **content))


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 broken"])
def test_broken_files(tmp_path, content):
    (tmp_path / "toy.npz").write_bytes(content)
    with pytest.raises(TstarError, match=r"must be an \.npz"):
        load("toy", root=tmp_path)


def test_size_is_for_images_only(tmp_path):
    save(tmp_path, **arrays((7,), "float32"))
    with pytest.raises(TstarError, match="size is for images, but toy holds vector samples"):
        load("toy", root=tmp_path, size=16)


def test_labels_of_two_axes_and_names_in_bytes(tmp_path):
    x, y = np.ones((12, 3)), np.arange(12) % 2
    np.savez(tmp_path / "hot.npz", x=x, y=np.eye(2)[y])
    with pytest.raises(TstarError, match=r"one label per sample.*argmax"):
        load(tmp_path / "hot.npz")
    np.savez(tmp_path / "bytes.npz", x=x, y=y, classes=np.array([b"a", "é".encode()]))
    assert load(tmp_path / "bytes.npz").classes == ("a", "é")
    np.savez(tmp_path / "latin.npz", x=x, y=y, classes=np.array([b"a", b"\xe9"]))
    assert load(tmp_path / "latin.npz").classes == ("a", "\\xe9")


Y = np.arange(6) % 3
SOURCE = """
import numpy as np

def sized(root, size):
    x = np.zeros((6, size or 8, size or 8, 3), dtype=np.uint8)
    y = np.arange(6) % 3
    return x, y, x, y

def plain(root):
    return sized(root, 4)
"""


@pytest.fixture
def part(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def test_arrays_and_tensors_are_the_same_data():
    x = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
    arrays = from_arrays("mine", (x, Y, x, Y))
    tensor = torch.from_numpy(x).permute(0, 3, 1, 2)
    tensors = from_arrays("mine", (tensor, torch.from_numpy(Y), tensor, torch.from_numpy(Y)))
    assert arrays.checksum() == tensors.checksum()
    assert (arrays.domain, arrays.num_classes) == ("image", 3)
    assert from_arrays("other", arrays) is arrays


def test_a_function_is_asked_for_a_size_only_if_it_takes_one(part, tmp_path):
    assert from_function(part("sized"), tmp_path, 16).x_train.shape == (6, 3, 16, 16)
    assert from_function(part("plain"), tmp_path, None).x_train.shape == (6, 3, 4, 4)
    with pytest.raises(TstarError, match="takes no size"):
        from_function(part("plain"), tmp_path, 16)
