"""Parts that a script hands over."""

import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.lab.sweep.small import rows_of
from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.sweep import shared
from tstar.lab.sweep.study import script_study


class Small(nn.Module):
    def __init__(self, num_classes, in_channels):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_channels, 4), nn.Linear(4, num_classes))

    def forward(self, x):
        return self.layers(x)


def arrays():
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.normal(size=(60, 5)).astype("float32") + y[:, None]
    return x, y, x, y


def pictures():
    x, y = np.zeros((60, 4, 4), np.uint8), np.arange(60) % 3
    return x, y, x[:3], y[:3]


GRID = {"dataset": arrays, "model": Small, "temperature": [1, 4]}


@pytest.mark.parametrize(
    "axes",
    [
        {"temperature": (1, 4), "seed": range(2)},
        {"temperature": np.array([1.0, 4.0]), "seed": np.arange(2)},
        {"temperature": [np.float32(1), torch.tensor(4)], "seed": [np.int64(0), 1]},
    ],
    ids=["tuples", "arrays", "scalars"],
)
def test_axes_may_be_arrays_and_ranges(axes):
    grid = {**GRID, "num_features": np.int64(8), **axes}
    plain = grid | {"num_features": 8, "temperature": [1, 4], "seed": [0, 1]}
    keys = [[spec.key for spec in script_study({"grid": one}).specs] for one in (grid, plain)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 4


def data_set(name="mine", **changes):
    x, y, *_ = arrays()
    parts = {"x_train": torch.tensor(x).float(), "y_train": torch.tensor(y)}
    parts |= {"x_test": parts["x_train"], "y_test": parts["y_train"], **changes}
    return DataSet(name, "vector", classes=("a", "b", "c"), **parts)


@pytest.mark.parametrize(
    "given",
    [arrays(), [*map(torch.tensor, arrays())], data_set()],
    ids=["arrays", "tensors", "DataSet"],
)
def test_run_study_takes_data_in_memory(tmp_path, given):
    """As if a function had returned them; a worker reads them, and the same ones are resumed."""
    training = {"epochs": 1, "batch_size": 16, "model": Small}
    results = []
    for dataset in (given, arrays):
        tables = {"csg": False, "training": training, "grid": {"dataset": dataset}}
        tables["grid"] |= {"temperature": [1, 4]}
        tally = tstar.lab.run_study(tables, tmp_path / "runs.db", workers=1)
        assert (tally.before, tally.done) == (0, 2)
        assert tstar.lab.run_study(tables, tmp_path / "runs.db", workers=1).before == 2
    for row in rows_of(tmp_path / "runs.db").values():
        results.append((row["temperature"], row["test_accuracy"], row["nll"]))
    assert sorted(results[:2]) == sorted(results[2:])


def test_data_in_memory_are_known_by_what_they_hold():
    other = data_set(y_test=torch.tensor(arrays()[1]).flip(0))
    grid = {**GRID, "dataset": [data_set(), data_set(), other, "digits"], "temperature": 1}
    study = script_study({"grid": grid})
    names = [spec.dataset for spec in study.specs]
    assert len({*names}) == 3
    assert [name for name in names if name.startswith("mine-")] == [*study.data]


def test_images_and_texts_in_memory_reach_the_workers_whole(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    images = torch.zeros(60, 1, 8, 8, dtype=torch.uint8)
    pixels = replace(data_set(), domain="image", x_train=images, x_test=images)
    shared.save_given(pixels, folder, "a", 4)
    assert shared.load(shared.place(folder, "a", 4)).x_train.shape == (60, 1, 4, 4)
    texts = replace(data_set(), domain="text", texts=(("é",) * 60, ("b",) * 60))
    shared.save_given(texts, folder, "b", None)
    assert shared.load(shared.place(folder, "b", None)).texts == texts.texts
    with pytest.raises(TstarError, match="size is for images, but mine holds text"):
        shared.save_given(texts, folder, "b", 4)


SECRET = 123.456


@pytest.mark.parametrize(
    "field",
    ["dataset", "model", "seed", "lr", "temperature"],
)
@pytest.mark.parametrize(
    "value",
    [
        np.full((500, 5), SECRET),
        [[SECRET] * 500] * 5,
        {"x": [SECRET] * 500},
        [np.full((500, 5), SECRET)] * 3,
        partial(arrays, [SECRET] * 500),
    ],
    ids=["array", "lists", "mapping", "three arrays", "partial"],
)
def test_no_error_prints_data(field, value):
    for table in ("training", "grid"):
        tables = {"training": {}, "grid": dict(GRID)}
        tables["grid"].pop(field, None)
        tables[table][field] = value
        with pytest.raises(TstarError) as caught:
            script_study(tables)
        assert str(caught.value).count(str(SECRET)) <= (0 if field == "dataset" else 12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": lambda: 1}, r"model must be a function or class at the top level"),
        ({"workers": -1}, "workers must be a whole number of at least 1"),
        ({"max_runs": 0}, "max_runs must be a whole number of at least 1"),
        ({"checkpoint": -1}, "checkpoint must be positive"),
        ({"dataset": pictures}, r"Small' must take the samples of '.*pictures' \(image, of"),
    ],
)
def test_run_study_refuses_what_it_cannot_use(tmp_path, changes, message):
    grid = GRID | {key: value for key, value in changes.items() if key in GRID}
    options = {key: value for key, value in changes.items() if key not in GRID}
    with pytest.raises(TstarError, match=message):
        tstar.lab.run_study({"grid": grid}, tmp_path / "runs.db", **options)
    assert not list(tmp_path.glob("*.data*"))


SCRIPT = """
import numpy as np, tstar
from torch import nn

def net(num_classes, in_channels):
    return nn.Sequential(nn.Linear(in_channels, 4), nn.Linear(4, num_classes))

def loss(logits, targets):
    return nn.functional.multi_margin_loss(logits, targets)

def arrays():
    x, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
    return x, y, x, y

def main():
    grid = {"dataset": [arrays, arrays()], "model": net, "temperature": [1, 4]}
    training = {"epochs": 1, "batch_size": 16, "loss": loss}
    tables = {"csg": False, "training": training, "grid": grid}
    tally = tstar.lab.run_study(tables, "runs.db", workers=1)
    print(tally)
"""


def script(folder, text):
    (folder / "script.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=900,
    )


@pytest.mark.slow
def test_a_script_hands_its_own_functions_and_data_to_the_workers(tmp_path):
    done = script(tmp_path, SCRIPT + "\nif __name__ == '__main__':\n    main()\n")
    assert "4/4: 4 done" in done.stdout, done.stderr
    assert {row["model"] for row in rows_of(tmp_path / "runs.db").values()} == {"script.py:net"}


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    done = script(tmp_path, SCRIPT + "\nmain()\n")
    assert done.returncode == 1
    assert "must be guarded: put it below if __name__ == '__main__':" in done.stderr
    assert rows_of(tmp_path / "runs.db") == {}
