"""All ways to hand over the same data give the same bits; what cannot be read is a clear error."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from tests.difficulty.helpers import Pairs
from tstar.difficulty import csg
from tstar.difficulty.matrix import read
from tstar.errors import TstarError

CLASSES = ["ape", "bee", "cow"]


class Stream(IterableDataset):
    def __init__(self, pairs):
        self.pairs = pairs

    def __iter__(self):
        return iter(self.pairs)


@pytest.fixture
def folder(images, tmp_path):
    """The images in the order that a folder is read in: class by class."""
    x, y = images
    order = np.argsort(y, kind="stable")
    for number, i in enumerate(order):
        path = tmp_path / "root" / CLASSES[y[i]] / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x[i]).save(path)
    return tmp_path / "root", x[order], y[order]


def test_every_container_of_the_same_images_gives_the_same_bits(images, tmp_path):
    x, y = images
    expected = csg(x, y, samples=20)
    assert 0.1 < expected.value < 1.9
    first = torch.from_numpy(x).permute(0, 3, 1, 2)
    unit = first.float() / 255
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, classes=np.array(CLASSES))
    pil = [Image.fromarray(i) for i in x]
    for data, labels in [
        (first, torch.from_numpy(y)),
        (unit, y.tolist()),
        (unit.double(), y),
        (x.astype(np.int64), y),
        (x / 255, y),
        (Pairs(pil, y), None),
        (Pairs(unit, torch.from_numpy(y)), None),
        (Pairs(x, y), None),
        (pil, y),
        (TensorDataset(first, torch.from_numpy(y)), None),
        (DataLoader(TensorDataset(unit, torch.from_numpy(y)), batch_size=16), None),
        (DataLoader(Stream([(a, b) for a, b in zip(unit, y, strict=True)]), batch_size=7), None),
        ([{"image": p, "label": int(c)} for p, c in zip(pil, y, strict=True)], None),
        ([{"img": p, "kind": int(c)} for p, c in zip(pil, y, strict=True)], "kind"),
        (tmp_path / "a.npz", None),
    ]:
        result = csg(data, labels, samples=20)
        assert result.value == expected.value
        assert result.interval == expected.interval
    assert result.classes == tuple(CLASSES)


def test_a_folder_gives_what_its_images_give(folder):
    root, x, y = folder
    for path in root, str(root):
        result = csg(path, samples=20)
        assert result.classes == tuple(CLASSES)
        assert result.value == csg(x, y, samples=20).value
    (root.parent / "parts" / "test" / "ape").mkdir(parents=True)
    root.rename(root.parent / "parts" / "train")
    assert csg(root.parent / "parts", samples=20).value == result.value  # the training part


def test_hugging_face_data_sets(images):
    datasets = pytest.importorskip("datasets")
    x, y = images
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)}
    )
    rows = {"image": [Image.fromarray(i) for i in x], "label": y.tolist()}
    result = csg(datasets.Dataset.from_dict(rows, features=features), samples=20)
    assert result.classes == tuple(CLASSES)
    assert result.value == csg(x, y, samples=20).value


def test_images_are_reduced_by_area_averaging(images):
    x, y = images
    large = x.repeat(3, axis=1).repeat(2, axis=2)  # each pixel becomes an area of 3×2 equal ones
    assert (read(large, y, size=32).values == read(x, y).values).all()
    half = x.reshape(90, 16, 2, 16, 2, 3).mean(axis=(2, 4))
    expected = np.rint(half).transpose(0, 3, 1, 2).reshape(90, -1)
    assert (read(x, y, size=16).values == expected).all()


def test_pil_images_of_any_size_and_mode_come_to_one(images):
    x, y = images
    sizes = [(20, 50), (64, 64), (33, 31)]
    mixed = [
        Image.fromarray(i).resize(sizes[n % 3]).convert(["RGB", "L", "RGBA", "P"][n % 4])
        for n, i in enumerate(x)
    ]
    matrix = read(Pairs(mixed, y))
    assert matrix.values.shape == (90, 3 * 32 * 32)
    assert matrix.values.dtype == np.uint8
    with pytest.raises(TstarError, match=r"same number of values.*size=32"):
        csg(Pairs(mixed, y), size=None)


def test_sixteen_bit_greys_are_not_clipped():
    gray = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16
    row = read([(Image.fromarray(gray), 0), (Image.fromarray(gray), 1)], size=64).values[0]
    assert (row.reshape(3, 64, 64)[0] == gray >> 8).all()


def test_floats_are_rounded_to_the_nearest_of_8_bits():
    x = np.full((2, 4, 4, 3), 0.6 / 255)
    assert (read(x, [0, 1], size=None).values == 1).all()


def test_normalized_images_have_the_neighbors_of_the_plain_ones(images):
    x, y = images
    unit = torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255
    result = csg(Pairs((unit - 0.5) / 0.2, y), samples=20)
    assert result.value == csg(x, y, samples=20).value
    assert "range" in result.notes[0]
    assert result.regime == "floored"


def test_float_features_are_taken_as_they_are(helpers):
    x, y = helpers.blobs(60, 3, 4, 0.5)
    assert read(x, y).values is not None
    np.testing.assert_array_equal(read(x, y).values, x)
    series = np.random.default_rng(0).normal(size=(60, 9, 12)).astype(np.float16)
    assert read(series, y).values.shape == (60, 108)
    assert (read(Pairs(series, y)).values == read(series, y).values).all()


def test_memory_is_bounded_by_the_matrix(images):
    import tracemalloc

    class Endless(Pairs):
        def __len__(self):
            return 600

        def __getitem__(self, i):
            return np.full((96, 96, 3), i % 251, np.uint8), i % 3

    tracemalloc.start()
    matrix = read(Endless(None, None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert matrix.values.nbytes == 600 * 3072
    assert (
        peak < 2 * matrix.values.nbytes
    )  # the images themselves would be 16.6 MB, nine times that


@pytest.mark.parametrize("labels", [[0, 1], np.zeros((90, 3)), None])
def test_labels_that_do_not_fit(images, labels):
    with pytest.raises(TstarError, match=r"same length|one value per sample|must be given"):
        csg(images[0], labels)


def test_labels_of_a_data_set_that_do_not_fit(images):
    with pytest.raises(TstarError, match="same length"):
        csg(list(images[0]), [*images[1], 0])
    with pytest.raises(TstarError, match="same length"):
        csg(list(images[0]), images[1][:-1])


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.empty((0, 3)), [], "at least two samples"),
        (np.ones((4, 2)), [1, 1, 1, 1], "at least two classes"),
        (np.ones((5, 2)), ["a", "a", "b", "b", "lone"], "'lone'"),
        (np.ones((4, 2)), [1, 1, 2, 2], "neighbors < 4"),
        (np.array([[0.0], [1.0], [np.nan], [2.0]]), [0, 0, 1, 1], "sample 2 has.*nan"),
        (np.array([[0.0], [1.0], [np.inf], [2.0]]), [0, 0, 1, 1], "sample 2 has.*inf"),
        (np.array([[0.0], [1.0], [1e200], [2.0]]), [0, 0, 1, 1], "1e100"),
        (np.ones(4), [0, 0, 1, 1], "one row per sample"),
        (np.array([["a"], ["b"]]), [0, 1], "numbers"),
        (np.full((4, 8, 8), 300), [0, 0, 1, 1], "0–255"),
        (np.zeros((4, 8, 8, 7)), [0, 0, 1, 1], "channels"),
        (np.ones((4, 2)), [0, 0, None, 1], "sample 2 has None"),
        (np.ones((4, 2)), [0, 0, float("nan"), 1], "sample 2 has nan"),
        ([1, 2, 3], None, "pair"),
        ([], None, "at least two samples"),
        (object(), None, "object"),
        ([{"picture": 1, "label": 2}], None, "picture"),
        ("no/such/place", None, "was not found"),
    ],
)
def test_bad_input_is_a_clear_error(data, labels, message):
    with pytest.raises(TstarError, match=message):
        csg(data, labels)


def test_nan_pixels_of_a_stream_are_named(images):
    unit = images[0] / np.float32(255)
    unit[17, 3, 3, 0] = np.nan
    with pytest.raises(TstarError, match="sample 17 has"):
        csg(Pairs(unit, images[1]))


def test_unreadable_files_are_named_and_counted_and_skipped_on_request_only(folder):
    root, x, y = folder
    (root / "ape" / "broken.png").write_bytes(b"\x89PNG nonsense")
    (root / "cow" / "zz.jpg").write_text("not an image", encoding="utf-8")
    (root / "cow" / "notes.txt").write_text("left out without a word", encoding="utf-8")
    (root / "cow" / ".hidden.png").write_text("likewise", encoding="utf-8")
    with pytest.raises(TstarError, match=r"2 are not.*broken\.png.*zz\.jpg.*skip_unreadable"):
        csg(root)
    result = csg(root, samples=20, skip_unreadable=True)
    assert "2 unreadable" in result.notes[0]
    assert result.value == csg(x, y, samples=20).value


def test_folders_that_are_none(tmp_path, folder):
    with pytest.raises(TstarError, match="has 0 such folders"):
        csg(tmp_path / "root" / "ape")
    (tmp_path / "empty" / "a").mkdir(parents=True)
    (tmp_path / "empty" / "b").mkdir()
    with pytest.raises(TstarError, match="none"):
        csg(tmp_path / "empty")


def test_files_that_are_none(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"nonsense")
    with pytest.raises(TstarError, match=r"\.npz"):
        csg(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", pictures=np.ones(3))
    with pytest.raises(TstarError, match="pictures"):
        csg(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", x=np.array([{"a": 1}], dtype=object), y=np.ones(1))
    with pytest.raises(TstarError, match="pickle"):
        csg(tmp_path / "c.npz")


def test_token_ids_are_refused_without_an_encoder():
    from tstar.data import DataSet

    ids, y = torch.randint(0, 9, (12, 4)), torch.arange(12) % 2
    data = DataSet("texts", "tokens", ids, y, ids, y, ("a", "b"))
    with pytest.raises(TstarError, match=r"texts holds token ids; .*before tokenize"):
        read(data)
    assert len(read(data, embed=lambda x: x.float()).codes) == 12
