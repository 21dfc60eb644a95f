"""Runs in TensorBoard's, MLflow's and W&B's own files, read back."""

import sys
from types import SimpleNamespace

import pytest

from tstar.errors import TstarError
from tstar.sweep.writers import parameters, writer

ROW = {
    "key": "abc",
    "status": "done",
    "curves": {"val_accuracy": [0.25, 0.5], "train_loss": [2.0, 1.0]},
    "spec": {"model": "mlp", "lr": 0.1, "size": None, "augment": True},
    "studies": {"mine": "00"},
    "test_accuracy": 0.75,
    "val_accuracy": 0.5,
    "nll": None,
    "test_metric": 0.375,
}


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer("tensorboard", str(tmp_path))(ROW)
    log = EventAccumulator(str(tmp_path / "abc"))
    log.Reload()
    found = {
        tag: [(event.step, event.value) for event in log.Scalars(tag)]
        for tag in log.Tags()["scalars"]
    }
    assert found == {
        "val_accuracy": [(1, 0.25), (2, 0.5)],
        "train_loss": [(1, 2.0), (2, 1.0)],
        "final/val_accuracy": [(0, 0.5)],
        "final/test_accuracy": [(0, 0.75)],
        "final/test_metric": [(0, 0.375)],
    }


@pytest.mark.slow  # MLflow builds its database step by step
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    curve = [1 / epoch for epoch in range(1, 151)]
    write = writer("mlflow", str(tmp_path))
    write({**ROW, "curves": {"train_loss": curve}})
    write({**ROW, "key": "def", "status": "failed", "curves": None})
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    number = client.get_experiment_by_name("mine").experiment_id
    failed, run = client.search_runs([number], order_by=["attributes.run_name DESC"])
    assert [r.info.run_name for r in (run, failed)] == ["abc", "def"]
    assert (run.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert (run.data.params["lr"], run.data.params["augment"]) == ("0.1", "True")
    assert (run.data.metrics["test_accuracy"], run.data.metrics["test_metric"]) == (0.75, 0.375)
    history = client.get_metric_history(run.info.run_id, "epoch/train_loss")
    assert [(m.step, m.value) for m in history] == list(enumerate(curve, 1))


def test_wandb_is_told_curves_parameters_and_scores(monkeypatch):
    """The package needs an account; what it is told is what counts here."""
    told = {"logs": [], "summary": {}}

    class Run:
        summary = SimpleNamespace(update=told["summary"].update)

        def log(self, values, step):
            told["logs"].append((step, values))

        def finish(self):
            told["finished"] = True

    def init(**given):
        told.update(given)
        return Run()

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    writer("wandb", "project")(ROW)
    assert (told["project"], told["id"], told["finished"]) == ("project", "abc", True)
    assert told["config"] == {"model": "mlp", "lr": 0.1, "augment": True, "status": "done"}
    assert told["logs"][1] == (2, {"val_accuracy": 0.5, "train_loss": 1.0})
    assert told["summary"] == {"test_accuracy": 0.75, "val_accuracy": 0.5, "test_metric": 0.375}


@pytest.mark.parametrize(
    ("steps", "epochs"), [(None, {"epochs": 200}), (30, {"steps": 30})], ids=["epochs", "steps"]
)
def test_the_epochs_of_a_run_that_counts_steps_are_not_told(steps, epochs):
    row = {**ROW, "spec": {"lr": 0.1, "epochs": 200, "steps": steps}}
    assert parameters(row) == {"lr": 0.1, "status": "done", **epochs}


@pytest.mark.parametrize(
    ("kind", "where", "message"),
    [("tensorbord", "x", "did you mean 'tensorboard'"), ("mlflow", "", "write mlflow:PLACE")],
)
def test_wrong_writers(kind, where, message):
    with pytest.raises(TstarError, match=message):
        writer(kind, where)


def test_a_curve_that_skips_epochs_keeps_its_epochs():
    from tstar.sweep.writers import points

    row = {**ROW, "curves": {"val_loss": [3.0, 2.0], "epoch": [4, 8]}}
    assert list(points(row)) == [("val_loss", 4, 3.0), ("val_loss", 8, 2.0)]
