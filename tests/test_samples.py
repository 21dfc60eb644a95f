"""Every form of labeled samples gives the same bits; what cannot be read is one clear error."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

import tstar
from tests.csg_data import Pairs, blobs, pictures
from tests.lab.data.forms import Pairs as Rows
from tests.lab.data.forms import Stream, X, Y
from tests.lab.data.forms import measured as csg
from tstar import difficulty
from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.data.door import as_task
from tstar.samples import (
    Samples,
    count_classes,
    encode,
    first_batch,
    open_samples,
    sample_count,
)


@pytest.fixture(scope="module")
def images():
    return pictures(90, 3, 32)


def read(data, labels=None, **options):
    return difficulty.read(open_samples(data, labels), **options)


def test_every_container_of_the_same_images_gives_the_same_bits(images):
    x, y = images
    expected = csg(x, y, samples=20)
    assert 0.1 < expected.value < 1.9
    first = torch.from_numpy(x).permute(0, 3, 1, 2)
    unit = first.float() / 255
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
        (DataLoader(Stream(unit, y), batch_size=7), None),
        ([{"image": p, "label": int(c)} for p, c in zip(pil, y, strict=True)], None),
        ([{"img": p, "kind": int(c)} for p, c in zip(pil, y, strict=True)], "kind"),
    ]:
        result = csg(data, labels, samples=20)
        assert result.value == expected.value
        assert result.interval == expected.interval


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


def test_floats_within_one_are_rounded_beside_others_and_averages_within_it_keep_their_unit():
    x = np.full((2, 2, 2, 3), 0.25)
    x[1] = [[[1.2] * 3, [0] * 3], [[0] * 3] * 2]
    matrix = read(x, [0, 1], size=1)
    np.testing.assert_allclose(matrix.values, [[64 / 255] * 3, [0.3] * 3], rtol=1e-6)
    assert (matrix.scale, matrix.notes) == (1.0, ())


def test_data_that_fill_the_memory_just_fit(monkeypatch):
    monkeypatch.setattr(difficulty.labeled, "memory_limit", lambda: 8)
    assert difficulty.stacked([np.zeros((2, 4), np.uint8)]).shape == (2, 4)
    with pytest.raises(TstarError, match="must fit into"):
        difficulty.stacked([np.zeros((3, 3), np.uint8)])


def test_sixteen_bit_greys_are_not_clipped():
    gray = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16
    row = read([(Image.fromarray(gray), 0), (Image.fromarray(gray), 1)], size=64).values[0]
    assert (row.reshape(3, 64, 64)[0] == gray >> 8).all()


def test_normalized_images_have_the_neighbors_of_the_plain_ones(images):
    x, y = images
    unit = torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255
    result = csg(Pairs((unit - 0.5) / 0.2, y), samples=20)
    assert result.value == csg(x, y, samples=20).value
    assert "range" in result.notes[0]
    assert result.regime == "floored"


def test_float_features_are_taken_as_they_are():
    x, y = blobs(60, 3, 4, 0.5)
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
    assert peak < 3 * matrix.values.nbytes  # the images themselves would be nine times that


@pytest.mark.parametrize("labels", [[0, 1], np.zeros((90, 3)), None])
def test_labels_that_do_not_fit(images, labels):
    with pytest.raises(TstarError, match=r"same length|one value per sample|must be given"):
        csg(images[0], labels)


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.empty((0, 3)), [], "at least two samples"),
        (np.ones((4, 2)), [1, 1, 1, 1], "4 samples of 1 classes"),
        (np.ones((5, 2)), ["a", "a", "b", "b", "lone"], "'lone'"),
        (np.ones((4, 2)), [1, 1, 2, 2], "more samples than neighbors"),
        (np.array([[0.0], [1.0], [np.nan], [2.0]]), [0, 0, 1, 1], "sample 2 has.*nan"),
        (np.array([[0.0], [1.0], [np.inf], [2.0]]), [0, 0, 1, 1], "sample 2 has.*inf"),
        (np.array([[0.0], [1.0], [1e200], [2.0]]), [0, 0, 1, 1], r"1e\+100"),
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


def test_a_loader_over_a_part_of_its_data_gives_that_part():
    chosen = [*range(0, 120, 2), 1, 3, 5]
    loader = DataLoader(Rows(), batch_size=8, sampler=SubsetRandomSampler(chosen))
    kept = sorted(chosen)
    assert csg(loader, samples=99).value == pytest.approx(csg(X[kept], Y[kept], samples=99).value)


@pytest.mark.parametrize("batch_size", [2, 8])
def test_reading_a_loader_leaves_its_order_and_the_process_alone(batch_size):
    loader = DataLoader(Rows(), batch_size=batch_size, shuffle=True)
    torch.manual_seed(0)
    expected = [y.tolist() for _, y in loader]
    torch.manual_seed(0)
    csg(loader, samples=20)
    first_batch(loader)
    as_task(loader)
    assert [y.tolist() for _, y in loader] == expected


IMAGES = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
K = torch.tensor([0, 1, 2, 0, 1, 2])
IDS = torch.arange(30).reshape(6, 5)


def mixed(items):
    """A user's own collating function, which gives a tuple."""
    samples, labels = zip(*items, strict=True)
    return torch.stack(samples) / 255, torch.tensor(labels)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DataLoader(TensorDataset(IMAGES / 255, K), 3), IMAGES[:2] / 255),
        (
            DataLoader(TensorDataset(IMAGES / 255, K), 3, shuffle=True),
            IMAGES[:2] / 255,
        ),
        (DataLoader(Pairs(IMAGES, K), 3, collate_fn=mixed), IMAGES[:2] / 255),
        (DataLoader(Stream(X, Y), 3), torch.as_tensor(X[:2]).float()),
        (DataLoader([(IMAGES[:3] / 255, K[:3])], batch_size=None), IMAGES[:3] / 255),
        (Pairs(IMAGES / 255, K), IMAGES[:2] / 255),
        ([(x / 255, y) for x, y in zip(IMAGES, K, strict=True)], IMAGES[:2] / 255),
        ((IMAGES, K), IMAGES[:2].float()),
        ((IMAGES.numpy(), K), IMAGES[:2].float()),
        ((IMAGES.movedim(1, -1).numpy(), K), IMAGES[:2].float()),
        ((IMAGES[:, 0].numpy(), K), IMAGES[:2, :1].float()),
        ((X.astype(np.float64), Y), torch.as_tensor(X[:2]).float()),
        ((IDS, K), IDS[:2]),
        (DataSet("a", "image", IMAGES, K, IMAGES, K, ("a", "b", "c")), IMAGES[:2].float()),
        (DataSet("a", "tokens", IDS, K, IDS, K, ("a", "b", "c")), IDS[:2]),
        ([{"x": x, "label": y} for x, y in zip(IMAGES / 255, K, strict=True)], IMAGES[:2] / 255),
        (
            [{"input_ids": x, "attention_mask": x, "labels": 0} for x in IDS],
            {"input_ids": IDS[:2], "attention_mask": IDS[:2]},
        ),
        ([{"text": "a text", "label": 0}] * 3, None),
        ([(Image.new("RGB", (8, 8)), 0)] * 3, None),
        ([], None),
        (iter(DataLoader(Rows(), 3)), None),
    ],
)
def test_the_first_batch_is_what_a_model_takes(data, expected):
    batch = first_batch(data)
    if isinstance(expected, dict):
        assert {*batch} == {*expected}
        assert all(torch.equal(batch[name], expected[name]) for name in expected)
    elif expected is None:
        assert batch is None
    else:
        assert batch.dtype == expected.dtype
        assert torch.equal(batch, expected)


def test_an_iterator_is_not_consumed_and_what_is_not_needed_is_not_read():
    class Counted(Rows):
        read = 0

        def __getitem__(self, i):
            self.read += 1
            return super().__getitem__(i)

    data = Counted()
    loader = DataLoader(data, 8)
    assert (sample_count(loader), count_classes(loader), data.read) == (120, None, 0)
    first_batch(loader)
    assert data.read == 2
    batches = iter(loader)
    assert (sample_count(batches), first_batch(batches)) == (None, None)
    files = Samples(y=[0, 1], pairs=lambda positions: iter(()), samples=2)
    assert (sample_count(files), first_batch(files)) == (2, None)
    assert len(list(batches)) == 15


def test_errors_of_the_users_code_name_the_place():
    class Broken(Rows):
        def __getitem__(self, i):
            if i == 17:
                raise KeyError("no such row")
            return super().__getitem__(i)

    with pytest.raises(TstarError, match=r"Item 17 .*: KeyError: 'no such row'"):
        csg(Broken())


@pytest.mark.parametrize(
    "labels", [[3, 1, 3, 2, 1], ["b", "a", "b"], [True, False], [7, 7, -(2**40)]]
)
def test_an_array_of_labels_is_coded_as_the_list_of_its_values(labels):
    codes, classes = encode(np.array(labels))
    listed, names = encode(labels)
    assert codes.tolist() == listed.tolist()
    assert classes == names
    assert list(map(type, classes)) == list(map(type, names))


@pytest.mark.parametrize(
    "missing", [None, float("nan"), pd.NaT, Decimal("NaN"), np.datetime64("NaT")], ids=repr
)
def test_a_label_that_is_missing_is_no_class(missing):
    with pytest.raises(TstarError, match="sample 1 has"):
        encode(["a", missing, "b", missing])


def test_names_are_the_labs():
    with pytest.raises(TstarError, match=r"tstar\.lab\.data\.open_data"):
        tstar.csg("digits")
