"""The one door: every form in which labeled samples come gives the same csg and the same task."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

import tstar
from tests.data.forms import EXPECTED, RNG, Pairs, X, Y
from tstar import TstarError, csg
from tstar.data.door import count_classes, open_data
from tstar.data.loading import load
from tstar.data.task import as_task


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X, Y, strict=True))


def forms():
    tensors = torch.from_numpy(X), torch.from_numpy(Y)
    yield "pair", (X, Y)
    yield "pair in a list", [X, Y]
    yield "lists", (X.astype(float).tolist(), Y.tolist())
    yield "tensors", tensors
    yield "columns", {"x": X, "y": Y}
    yield "parts", {"train": Pairs(), "validation": Pairs(X[:30], Y[:30])}
    yield "dataset", Pairs()
    yield "tensor dataset", TensorDataset(*tensors)
    yield "subset", Subset(TensorDataset(*tensors), range(120))
    yield (
        "concatenation",
        ConcatDataset([Pairs(X[:50], Y[:50]), TensorDataset(*(t[50:] for t in tensors))]),
    )
    yield "iterable", Stream()
    yield "loader", DataLoader(Pairs(), batch_size=7)
    yield "shuffling loader", DataLoader(Pairs(), batch_size=7, shuffle=True, drop_last=True)
    yield "loader of a stream", DataLoader(Stream(), batch_size=7)
    yield "rows", list(zip(X, Y, strict=True))
    yield "dictionaries", [{"features": x, "label": int(y)} for x, y in zip(X, Y, strict=True)]


@pytest.mark.parametrize(("kind", "data"), list(forms()), ids=[kind for kind, _ in forms()])
def test_one_csg_and_one_task_from_every_form(kind, data):
    assert csg(data, samples=20).value == EXPECTED
    task = as_task(data)
    assert (task.num_classes, task.domain) == (3, "vector")
    assert len(task.x_train) + len(task.x_test) == 150 if kind == "parts" else 120


def test_tables_are_read_by_rows():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X)
    assert csg(table, pandas.Series(Y), samples=20).value == EXPECTED
    assert csg((table, pandas.DataFrame({"y": Y})), samples=20).value == EXPECTED
    named = table.assign(kind=np.array(["a", "b", "c"])[Y])
    result = csg(named, "kind", samples=20)
    assert (result.value, result.classes) == (EXPECTED, ("a", "b", "c"))
    assert csg(table.astype("Float64"), Y, samples=20).value == EXPECTED
    with pytest.raises(TstarError, match="labels must be given"):
        csg(named)
    with pytest.raises(TstarError, match="must hold numbers"):
        csg(named, Y)
    with pytest.raises(TstarError, match="numbers"):
        csg(table.astype("Float64").mask(table > 2), Y)


def test_tables_of_polars_and_arrays_of_xarray():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({f"c{i}": X[:, i] for i in range(6)} | {"y": Y})
    assert csg(table, "y", samples=20).value == EXPECTED
    assert csg(table.drop("y"), table["y"], samples=20).value == EXPECTED
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(X, dims=("row", "column"))
    assert csg(array, Y, samples=20).value == EXPECTED
    with pytest.raises(TstarError, match=r"xarray|Dataset|column"):
        csg(xarray.Dataset({"a": array}), Y)


def test_masks_are_not_lost():
    masked = np.ma.masked_array(X, mask=X > 2)
    with pytest.raises(TstarError, match="data must have no masked values"):
        csg(masked, Y)
    with pytest.raises(TstarError, match="labels must have no masked values, but 60 are"):
        csg(X, np.ma.masked_array(Y, mask=np.arange(120) < 60))
    assert csg(np.ma.masked_array(X), np.ma.masked_array(Y), samples=20).value == EXPECTED


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        (np.array(3.0), [0]),
        (np.float64(3), None),
        (torch.tensor(1.0), torch.tensor(0)),
        (X, np.array(0)),
        (X, 5),
        (X, torch.tensor(0)),
        ({}, None),
        ({"a": 1}, None),
        ({"train": 3}, None),
        (torch.empty(120, 6, device="meta"), Y),
        (torch.zeros(120, 6, dtype=torch.complex64), Y),
        (X.astype(complex), Y),
        (X.astype(str), Y),
        (X.astype("V4"), Y),
        (np.zeros(120, dtype=[("a", "f4"), ("b", "f4")]), Y),
        (np.array(["a", None, 3] * 40, dtype=object).reshape(120, 1), Y),
        (np.zeros((120, 6), "datetime64[s]"), Y),
        (X, [[1, 0]] * 120),
        (X, [{"a": 1}] * 120),
        (None, None),
        ((), ()),
        (b"bytes", None),
        ([X[:3], Y], None),
        (iter([1, 2]), None),
        ({1, 2}, [0, 1]),
        (lambda: 3, None),
    ],
)
def test_odd_input_ends_in_the_packages_own_error(data, labels):
    with pytest.raises(TstarError):
        csg(data, labels)


def test_odd_dtypes_that_hold_numbers():
    whole = np.clip(np.round(X * 2), -8, 8)
    expected = csg(whole, Y, samples=20).value
    tensor = torch.from_numpy(whole)
    assert csg(tensor.to(torch.float8_e4m3fn), Y, samples=20).value == expected
    assert csg(tensor.to(torch.bfloat16), Y, samples=20).value == expected
    assert csg(tensor.to_sparse(), Y, samples=20).value == expected
    assert csg(whole.astype(">f8"), Y, samples=20).value == expected
    assert csg(whole.astype(object), Y, samples=20).value == expected
    assert csg(X, Y.astype(np.uint64) + np.uint64(2**63), samples=20).value == EXPECTED
    assert csg(X, Y[:, None], samples=20).value == EXPECTED


def test_token_ids_are_told_by_their_look_under_any_name():
    ids = RNG.integers(0, 1000, (120, 5))
    pairs = [{"x": row.tolist(), "label": int(y)} for row, y in zip(ids, Y, strict=True)]
    for data in (
        pairs,
        [{"input_ids": row["x"], "labels": row["label"]} for row in pairs],
        TensorDataset(torch.from_numpy(ids), torch.from_numpy(Y)),
        (torch.from_numpy(ids), Y),
    ):
        with pytest.raises(TstarError, match="token ids"):
            csg(data)
        assert csg(data, embed=lambda batch: batch.float(), samples=20).num_classes == 3
        assert as_task(data).domain == "tokens"
    assert csg(ids, Y, samples=20).num_classes == 3  # a table of counts is no text


def test_hugging_face_parts():
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_dict({"features": X.tolist(), "label": Y.tolist()})
    parts = datasets.DatasetDict(train=part, test=part.select(range(30)))
    assert csg(parts, samples=20).value == csg(part, samples=20).value == EXPECTED
    assert len(as_task(parts).x_test) == 30
    assert len(as_task(parts).x_train) == 120


def test_a_bounded_sample_reads_no_more_and_follows_the_seed():
    read = []

    class Counting(list):
        def __getitem__(self, i):
            read.append(i)
            return super().__getitem__(i)

    rows = Counting(zip(X, Y, strict=True))
    assert open_data(rows).length == 120
    result = csg(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), limit=60, samples=9)
    same = csg(X, Y, limit=60, samples=9)
    assert same.value == result.value
    assert result.num_samples == 60
    assert "60 of 120" in result.notes[-1]
    for rows_of_class, name in zip(result.indices, result.classes, strict=True):
        assert (Y[rows_of_class] == name).all()  # positions in the whole data
    assert csg(X, Y, limit=60, samples=9, seed=1).value != result.value
    assert csg(X, Y, limit=120, samples=20).value == EXPECTED


def test_no_warning_escapes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        csg(DataLoader(Pairs(), batch_size=5), samples=5)


def test_classes_are_counted_without_decoding_an_image(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / "1.png").write_bytes(b"not an image")
    assert count_classes(tmp_path / "pets") == 2
    np.savez(tmp_path / "x.npz", x=np.zeros((6, 4)), y=np.array([0, 3, 3, 7, 7, 7]))
    assert count_classes(tmp_path / "x.npz") == 3
    assert count_classes("digits") == 10
    assert count_classes(load("digits")) == 10


def test_classes_are_counted_wherever_the_labels_are_listed():
    assert count_classes((X, Y)) == 3
    assert count_classes((Pairs(), Y)) == 3
    assert count_classes(open_data((X, np.where(Y == 2, np.nan, Y)))) == 2
    listed = Pairs()
    listed.targets = Y.tolist()
    assert count_classes(listed) == count_classes(DataLoader(listed)) == 3
    assert count_classes(Subset(listed, [0, 1])) is None  # a part need not have all of them
    assert count_classes(Stream()) is None


def _doors(x, y):
    tensors = TensorDataset(torch.as_tensor(x), torch.as_tensor(y))
    listed = Pairs()
    listed.targets = torch.as_tensor(y)
    yield "arrays", (x, y)
    yield "tensors", tensors
    yield "loader", DataLoader(tensors, batch_size=5)
    yield (
        "sampled",
        DataLoader(tensors, batch_size=5, sampler=WeightedRandomSampler([1.0] * len(y), 9)),
    )
    yield "part", Subset(tensors, [3, 4])
    yield "pairs", [*zip(x, y, strict=True)]
    yield (
        "dictionaries",
        [{"x": sample, "label": label.tolist()} for sample, label in zip(x, y, strict=True)],
    )
    yield "targets", listed


@pytest.mark.parametrize(
    "targets",
    [
        np.eye(3, dtype=np.float32)[Y],
        np.linspace(0.1, 0.9, len(Y) * 2).reshape(-1, 2),
        np.linspace(0.1, 0.9, len(Y)),
    ],
    ids=["several labels", "regression of two", "regression"],
)
def test_targets_that_are_no_classes_are_refused_at_every_door(targets):
    model = nn.Sequential(nn.Linear(X.shape[1], 8), nn.ReLU(), nn.Linear(8, 3))
    for name, data in _doors(X, targets):
        if targets.ndim == 1 and name in ("part", "pairs", "dictionaries"):
            continue  # one number might recur, which is seen when they are read
        with pytest.raises(TstarError, match=r"labels must .*(per sample|real numbers)") as refused:
            open_data(data)
        assert "argmax" in str(refused.value), name
        with pytest.raises(TstarError, match="labels must"):
            tstar.recommend(model, data)


def test_classes_pass_at_every_door_whatever_their_type():
    for y in (Y, Y.astype(np.float64), Y[:, None], Y.astype(bool)):
        for name, data in _doors(X, y):
            assert open_data(data).samples == (2 if name == "part" else len(Y)), name
    per_position = np.stack([Y, Y], 1)
    assert open_data(TensorDataset(torch.as_tensor(X), torch.as_tensor(per_position)))
    masked = TensorDataset(torch.as_tensor(X), torch.rand(len(Y), 4), torch.as_tensor(Y))
    assert open_data(masked)  # which of three is the label is not known
    hot = TensorDataset(torch.as_tensor(X), torch.eye(3)[Y])

    def collate(batch):
        return torch.stack([x for x, _ in batch]), torch.stack([y for _, y in batch]).argmax(1)

    assert csg(DataLoader(hot, batch_size=9, collate_fn=collate), samples=20).num_classes == 3


def test_real_numbers_that_recur_are_classes_and_others_are_refused_when_they_are_read():
    class Own(Pairs):
        def __init__(self, times):
            super().__init__()
            self.times = times

        def __getitem__(self, i):
            return super().__getitem__(i)[0], 0.5 + i % self.times

    assert open_data((X, 0.5 + Y)).samples == len(Y)
    assert as_task(Own(4)).num_classes == 4
    with pytest.raises(TstarError, match="labels must be classes, got 120 real numbers"):
        as_task(Own(1000))


def test_classes_of_tensors_are_counted():
    tensors = TensorDataset(torch.as_tensor(X), torch.as_tensor(Y))
    assert count_classes(tensors) == count_classes(DataLoader(tensors)) == 3


def test_samples_are_counted_in_whatever_order_a_loader_goes():
    weighted = WeightedRandomSampler([1.0] * len(Y), 30)
    loader = DataLoader(Pairs(), batch_size=7, sampler=weighted)
    assert open_data(loader).length is None
    assert open_data(loader).samples == len(Y) == open_data((X, Y)).samples
    assert open_data(Stream()).samples is None


def test_what_was_opened_is_not_opened_again():
    source = open_data((X, Y))
    assert open_data(source) is source
    assert csg(source, samples=20).value == EXPECTED


def test_size_is_for_images_that_are_read_by_name(tmp_path, monkeypatch):
    rows = "".join(f"{'red green' if i % 2 else 'blue dog'},{i % 2}\n" for i in range(20))
    for part in ("train", "test"):
        (tmp_path / f"texts_{part}.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    assert csg("texts", root=tmp_path).value == pytest.approx(0, abs=1e-6)
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef sets(root):\n    x = np.eye(6, 4, dtype=np.float32)\n"
        "    return x, np.arange(6) % 2, x, np.arange(6) % 2\n",
        encoding="utf-8",
    )
    assert csg(f"{tmp_path / 'mine.py'}:sets", neighbors=2).num_samples == 6


def test_a_few_of_very_many_positions_need_no_list_of_all():
    class Many(torch.utils.data.Dataset):
        def __len__(self):
            return 10**15

        def __getitem__(self, index):
            return X[index % len(X)], int(Y[index % len(Y)])

    drawn = open_data(Many()).some(50, seed=0)
    assert len(set(drawn.tolist())) == 50
    assert drawn.max() > 10**13
    assert float(csg(Many(), limit=60)) >= 0
