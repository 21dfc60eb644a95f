"""Parts that a script hands over."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.sweep.parts import rows_of
from tstar.errors import TstarError
from tstar.sweep.given import read_given


class Small(nn.Module):
    def __init__(self, num_classes, in_channels):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_channels, 4), nn.Linear(4, num_classes))

    def forward(self, x):
        return self.layers(x)


def _data():
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    return random.normal(size=(60, 5)).astype("float32") + y[:, None], y


def _pictures():
    x, y = np.zeros((60, 4, 4), np.uint8), np.arange(60) % 3
    return x, y, x[:3], y[:3]


@pytest.mark.parametrize(
    "axes",
    [
        {"temperature": (1, 4), "seed": range(2)},
        {"temperature": np.array([1.0, 4.0]), "seed": np.arange(2)},
        {"temperature": [np.float32(1), torch.tensor(4)], "seed": [np.int64(0), 1]},
    ],
    ids=["tuples", "arrays", "scalars"],
)
def test_axes_may_be_arrays_and_ranges(tmp_path, axes):
    x, y = _data()
    grid = {"dataset": "mine", "model": "mine", "num_features": np.int64(8), **axes}
    plain = grid | {"num_features": 8, "temperature": [1, 4], "seed": [0, 1]}
    keys = []
    for one in (grid, plain):
        given = ({}, {"mine": (x, y, x, y)}, {})
        with read_given({"grid": one}, tmp_path / "runs.db", *given) as study:
            keys.append([spec.key for spec in study.specs])
    assert keys[0] == keys[1]
    assert len(keys[0]) == 4


def test_run_study_takes_functions_and_arrays(tmp_path):
    x, y = _data()
    grid = {"dataset": "mine", "model": "mine", "temperature": [1, 4]}
    tables = {
        "name": "own",
        "csg": False,
        "training": {"epochs": 1, "batch_size": 16},
        "grid": grid,
    }
    seen = []
    options = {"models": {"mine": Small}, "data": {"mine": (x, y, x, y)}, "workers": 1}
    tally = tstar.run_study(tables, tmp_path / "runs.db", on_run=seen.append, **options)
    assert (tally.done, [row["status"] for row in seen]) == (2, ["done", "done"])
    assert seen[0]["studies"] == {"own": seen[1]["studies"]["own"]}
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db"]
    assert tstar.run_study(tables, tmp_path / "runs.db", **options).before == 2
    other = (x + 1, y, x, y)
    tally = tstar.run_study(tables, tmp_path / "runs.db", **options | {"data": {"mine": other}})
    assert tally.done == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"models": {"mine": lambda: 1}},
            r"models\['mine'\] must be a function or class at the top level",
        ),
        ({"data": {"mine": (1, 2, 3)}}, "mine must give x_train"),
        ({"data": {"mine": (np.ones((4, 2)), [0, 1, 2], np.ones((4, 2)), [0, 1, 2, 0])}}, "mine"),
        ({"study": 3}, "study must be a study, a TOML file or its tables"),
        ({"models": [Small]}, "models must be a mapping from names to parts, got list"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"workers": -1}, "workers must be a whole number of at least 1"),
        ({"max_runs": 0}, "max_runs must be a whole number of at least 1"),
        ({"checkpoint": -1}, "checkpoint must be positive"),
        ({"on_run": 3}, "on_run must be a function of a run's row, got 3"),
        ({"data": {"mine": _pictures()}}, r"'mine' must take the samples of 'mine' \(image, of"),
    ],
)
def test_run_study_refuses_what_it_cannot_use(tmp_path, changes, message):
    x, y = _data()
    grid = {"dataset": "mine", "model": "mine", "temperature": 1}
    given = {"study": {"grid": grid}, "models": {"mine": Small}, "data": {"mine": (x, y, x, y)}}
    with pytest.raises(TstarError, match=message):
        tstar.run_study(store=tmp_path / "runs.db", **given | changes)
    assert not list(tmp_path.glob("*.data*"))


SCRIPT = """
import numpy as np, tstar
from torch import nn

def net(num_classes, in_channels):
    return nn.Sequential(nn.Linear(in_channels, 4), nn.Linear(4, num_classes))

def loss(logits, targets):
    return nn.functional.multi_margin_loss(logits, targets)

x, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
def main():
    grid = {"dataset": "mine", "model": net, "temperature": [1, 4]}
    training = {"epochs": 1, "batch_size": 16, "loss": loss}
    tally = tstar.run_study({"csg": False, "training": training, "grid": grid}, "runs.db", data={"mine": (x, y, x, y)}, workers=1)
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
def test_a_script_hands_its_own_functions_to_the_workers(tmp_path):
    done = script(tmp_path, SCRIPT + "\nif __name__ == '__main__':\n    main()\n")
    assert "2/2: 2 done" in done.stdout, done.stderr
    assert {row["model"] for row in rows_of(tmp_path / "runs.db").values()} == {"script.py:net"}


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    done = script(tmp_path, SCRIPT + "\nmain()\n")
    assert done.returncode == 1
    assert "must be guarded: put it below if __name__ == '__main__':" in done.stderr
    assert rows_of(tmp_path / "runs.db") == {}
