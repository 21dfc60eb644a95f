"""Studies with a network, data, method, loss and so on of one's own."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from torch import nn

import tstar
from tstar.errors import TstarError
from tstar.sweep.plan import make_plan
from tstar.sweep.run import run_sweep
from tstar.sweep.store import Store
from tstar.sweep.study import load_study

PARTS = """
import numpy as np
import torch
from torch import nn
from tstar.methods import Recipe

def net(num_classes, in_channels, num_features=6):
    return nn.Sequential(nn.Linear(in_channels, num_features), nn.ReLU(), nn.Linear(num_features, num_classes))

def arrays(root, size):
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.normal(size=(60, 5)).astype("float32") + y[:, None]
    return x, y, x[:30], y[:30]

def method(model, facts, power=1):
    return Recipe(model, lambda z, y, x: nn.functional.cross_entropy(z / 2**power, y))

def optimizer(parameters, lr):
    return torch.optim.RMSprop(parameters, lr)

def schedule(step, steps):
    return 1 - step / (2 * steps)

def augment(batch, generator):
    return batch + 0.01 * torch.randn(batch.shape, generator=generator)

def loss(logits, targets):
    return nn.functional.multi_margin_loss(logits, targets)

def metric(logits, targets):
    return (logits.argmax(1) == targets).float().mean() * 100
"""
STUDY = """
csg = false
[training]
epochs = 2
batch_size = 16
dataset = "./parts.py:arrays"
optimizer = "./parts.py:optimizer"
schedule = "./parts.py:schedule"
augment = "./parts.py:augment"
loss = "./parts.py:loss"
metric = "./parts.py:metric"
lr = 0.01
[[grid]]
model = "parts:net"
num_features = [4, 8]
temperature = 2
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def rows_of(path):
    with Store(path) as store:
        return {row["key"]: row for row in store.rows()}


def do(folder, engine):
    study = load_study(folder / "study.toml")
    with Store(folder / "runs.db", create=True) as store:
        return run_sweep(make_plan(study, store), store, engine, study=(study.name, study.hash))


def test_every_part_may_be_yours(folder, inline):
    tally = do(folder, inline())
    assert (tally.done, tally.failed) == (2, 0)
    for row in rows_of(folder / "runs.db").values():
        assert (row["model"], row["dataset"]) == ("parts:net", "./parts.py:arrays")
        assert (row["num_classes"], row["domain"], len(row["source"])) == (3, "vector", 16)
        extra = json.loads(row["extra"])
        assert extra["metric"] == pytest.approx(100 * row["test_accuracy"])
        assert extra["val_metric"] == pytest.approx(100 * row["val_accuracy"])


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("nn.ReLU()", "nn.Tanh()", 2),
        ("multi_margin_loss(logits, targets)", "multi_margin_loss(logits, targets, p=2)", 2),
        ("import numpy as np", "import numpy as np  # a remark", 0),
    ],
)
def test_a_changed_function_is_trained_again(folder, inline, old, new, again):
    do(folder, inline())
    (folder / "parts.py").write_text(PARTS.replace(old, new))
    tally = do(folder, inline())
    assert (tally.done, tally.before) == (again, 2 - again)


def test_changed_data_are_trained_again(folder, inline):
    do(folder, inline())
    (folder / "parts.py").write_text(PARTS.replace("default_rng(0)", "default_rng(1)"))
    assert do(folder, inline()).done == 2


def test_a_part_that_changes_under_way_fails_the_run_instead_of_lying(folder, inline):
    class Meddling(inline):
        def submit(self, job):
            (folder / "parts.py").write_text(PARTS.replace("nn.ReLU()", "nn.Tanh()"))
            super().submit(job)

    tally = do(folder, Meddling())
    assert tally.failed == 2
    assert all("has changed since" in row["error"] for row in rows_of(folder / "runs.db").values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "import torch\n",
            "import torhc\n",
            r"study, line 6: .*parts.py:arrays could not be imported",
        ),
        ("def net(", "def nets(", r"study, line 14: .*did you mean 'nets'"),
        (
            "def net(num_classes, in_channels, num_features=6):\n    return",
            "def net():\n    return 3 or",
            "takes no num_features",
        ),
        (
            "    return nn.Sequential(",
            "    return 3 or (",
            "must return a torch.nn.Module, got int",
        ),
        ("nn.Linear(in_channels,", "nn.Linear(7,", r"A trial step of the run .* failed"),
        ("x[:30], y[:30]", "x[:30]", "must give x_train, y_train, x_test and y_test"),
        (
            "return torch.optim.RMSprop(parameters, lr)",
            "return lr",
            "must return a torch optimizer",
        ),
        ("return 1 - step / (2 * steps)", "return None", "schedule returns must be a number"),
        ("return batch + 0.01", "return batch[:1] #", "must return a tensor of"),
        ("multi_margin_loss(logits, targets)", "softmax(logits, 1)", "must return one number"),
        (".float().mean() * 100", "", "metric returns must be a number"),
        (
            "num_features, num_classes))",
            "num_features, 9))",
            "one output for each of the data's 3 classes",
        ),
    ],
)
def test_a_part_that_fails_is_one_error_before_any_run(folder, inline, old, new, message):
    assert old in PARTS
    (folder / "parts.py").write_text(PARTS.replace(old, new))
    engine = inline()
    with pytest.raises(TstarError, match=message):
        do(folder, engine)
    assert engine.executed == []


def test_machine_paths_are_refused(folder):
    text = STUDY.replace("parts:net", str(folder / "parts.py:net"))
    (folder / "study.toml").write_text(text)
    with pytest.raises(
        TstarError, match="line 14: model must be a module or a file beside the study"
    ):
        load_study(folder / "study.toml")


def test_a_method_of_your_own_with_options(folder, inline):
    text = STUDY.replace("temperature = 2", 'method = "./parts.py:method"')
    text = text.replace('loss = "./parts.py:loss"\n', "")
    (folder / "study.toml").write_text(text + '\n[options."./parts.py:method"]\npower = 3\n')
    assert do(folder, inline()).done == 2
    (row, *_) = rows_of(folder / "runs.db").values()
    assert (row["method"], row["options"]) == ("./parts.py:method", '{"power": 3}')


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
    ],
)
def test_run_study_refuses_what_it_cannot_use(tmp_path, changes, message):
    x, y = _data()
    grid = {"dataset": "mine", "model": "mine", "temperature": 1}
    given = {"study": {"grid": grid}, "models": {"mine": Small}, "data": {"mine": (x, y, x, y)}}
    with pytest.raises(TstarError, match=message):
        tstar.run_study(store=tmp_path / "runs.db", **given | changes)
    assert not list(tmp_path.glob("*.data*"))


def test_a_callback_that_raises_loses_nothing(folder, inline):
    def on_run(row):
        raise ValueError("no space")

    study = load_study(folder / "study.toml")
    with (
        Store(folder / "runs.db", create=True) as store,
        pytest.raises(TstarError, match=r"The callback .*on_run failed: ValueError: no space"),
    ):
        run_sweep(make_plan(study, store), store, inline(), on_run=on_run)
    assert [row["status"] for row in rows_of(folder / "runs.db").values()] == ["done"]


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
    (folder / "script.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120
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


def test_packages_offer_parts_by_entry_points(folder, tmp_path, monkeypatch):
    offered = {
        "tstar.models": {"theirs": f"{folder}/parts.py:net"},
        "tstar.data": {"their-data": f"{folder}/parts.py:arrays"},
        "tstar.methods": {"their-method": f"{folder}/parts.py:method"},
    }
    monkeypatch.setattr(tstar.own, "entry_points", lambda group: offered.get(group, {}))
    assert tstar.data.load("their-data").num_classes == 3
    assert tstar.models.build("theirs", 3, in_channels=5, seed=0)[2].out_features == 3
    assert tstar.methods.get("their-method", power=2).options == {"power": 2}
    text = STUDY.replace("parts:net", "theirs").replace("./parts.py:arrays", "their-data")
    (folder / "study.toml").write_text(text)
    study = load_study(folder / "study.toml")
    assert study.specs[0].source is not None
    assert study.places["model"] == {"theirs": f"{folder}/parts.py:net"}


def test_the_docs_way_of_calling_a_sweep_works(folder):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import tstar; print(tstar.sweep.sweep.__name__, tstar.run_study.__name__)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["sweep", "run_study"]
