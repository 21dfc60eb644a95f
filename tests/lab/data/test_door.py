"""The one door: every form in which labeled samples come gives the same csg and the same task."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

import tstar
from tests.lab.data.forms import EXPECTED, RNG, Pairs, Stream, X, Y
from tests.lab.data.forms import measured as csg
from tstar import TstarError
from tstar.lab.data.door import as_task, open_data
from tstar.lab.data.loading import load
from tstar.samples import count_classes


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
    read = 150 if kind == "parts" else 120  # the parts bring a test part of 30
    assert len(task.x_train) + len(task.x_test) == read


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


def test_masks_are_not_lost():
    masked = np.ma.masked_array(X, mask=X > 2)
    with pytest.raises(TstarError, match="data must have no masked values"):
        csg(masked, Y)
    with pytest.raises(TstarError, match="labels must have no masked values"):
        csg(X, np.ma.masked_array(Y, mask=np.arange(120) < 60))
    assert csg(np.ma.masked_array(X), np.ma.masked_array(Y), samples=20).value == EXPECTED


def test_odd_dtypes_that_hold_numbers():
    whole = np.clip(np.round(X * 2), -8, 8)
    expected = csg(whole, Y, samples=20).value
    tensor = torch.from_numpy(whole)
    assert csg(tensor.to(torch.float8_e4m3fn), Y, samples=20).value == expected
    assert csg(tensor.to(torch.bfloat16), Y, samples=20).value == expected
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
        assert as_task(data).domain == "tokens"
    assert csg(ids, Y, samples=20).num_classes == 3  # a table of counts is no text


def test_hugging_face_parts():
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_dict({"features": X.tolist(), "label": Y.tolist()})
    parts = datasets.DatasetDict(train=part, test=part.select(range(30)))
    assert csg(parts, samples=20).value == csg(part, samples=20).value == EXPECTED
    assert len(as_task(parts).x_test) == 30
    assert len(as_task(parts).x_train) == 120


def test_classes_are_counted_without_decoding_an_image(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / "1.png").write_bytes(b"not an image")
    assert count_classes(open_data(tmp_path / "pets")) == 2
    np.savez(tmp_path / "x.npz", x=np.zeros((6, 4)), y=np.array([0, 1, 1, 2, 2, 2]))
    assert count_classes(open_data(tmp_path / "x.npz")) == 3
    assert count_classes(open_data("digits")) == 10
    assert count_classes(load("digits")) == 10


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
        if name in ("part", "pairs", "dictionaries"):
            continue  # they list no labels: seen when they are read
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


def test_samples_are_counted_in_whatever_order_a_loader_goes():
    weighted = WeightedRandomSampler([1.0] * len(Y), 30)
    loader = DataLoader(Pairs(), batch_size=7, sampler=weighted)
    assert not open_data(loader).indexed
    assert open_data(loader).samples == len(Y) == open_data((X, Y)).samples
    assert open_data(Stream()).samples is None


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


@pytest.fixture(scope="module")
def digits():
    return load("digits").subset(500, 100)


def test_data_in_every_form_are_the_same_task(digits):
    pairs = [(x.float() / 255, int(y)) for x, y in zip(digits.x_train, digits.y_train, strict=True)]
    arrays = (digits.x_train.float().numpy() / 255, digits.y_train.numpy())
    tasks = [
        as_task(pairs),
        as_task(arrays),
        as_task((digits.x_train.float() / 255, digits.y_train)),
    ]
    for task in tasks:
        assert (task.domain, task.num_classes, task.raw) == ("image", 10, False)
        assert torch.equal(task.x_train, tasks[0].x_train)
        assert torch.equal(task.y_test, tasks[0].y_test)
        assert len(task.y_train) + len(task.y_test) == 500
    assert as_task((digits.x_train, digits.y_train)).raw
    assert as_task(digits).x_test is digits.x_test
    assert as_task("digits").name == "digits"
    words = as_task((np.random.default_rng(0).random((20, 3)), np.array(["a", "b"] * 10)))
    assert (words.domain, words.num_classes) == ("vector", 2)


def test_of_a_stream_that_never_ends_a_part_is_read(monkeypatch):
    monkeypatch.setattr("tstar.lab.data.door._MOST", 40)
    task = as_task((np.full(3, i % 2, np.float32), i % 2) for i in itertools.count())
    assert len(task.y_train) + len(task.y_test) == 40
