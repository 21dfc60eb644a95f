"""Runs in TensorBoard's, MLflow's and W&B's own files, read back."""

import sys
from types import SimpleNamespace

import pytest

from tstar.errors import TstarError
from tstar.sweep.writers import writer

ROW = {
    "key": "abc",
    "status": "done",
    "curves": {"val_accuracy": [0.25, 0.5], "train_loss": [2.0, 1.0]},
    "spec": {"model": "mlp", "lr": 0.1, "size": None, "augment": True},
    "studies": {"mine": "00"},
    "test_accuracy": 0.75,
    "val_accuracy": 0.5,
    "nll": None,
}


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer("tensorboard", str(tmp_path))(ROW)
    log = EventAccumulator(str(tmp_path / "abc"))
    log.Reload()
    assert [(e.step, e.value) for e in log.Scalars("val_accuracy")][:2] == [(1, 0.25), (2, 0.5)]
    assert log.Scalars("test_accuracy")[-1].value == 0.75


def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    writer("mlflow", str(tmp_path))(ROW)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert run.data.params["lr"] == "0.1"
    assert run.data.metrics["test_accuracy"] == 0.75
    assert [m.value for m in client.get_metric_history(run.info.run_id, "epoch/train_loss")] == [
        2,
        1,
    ]


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
    assert told["summary"]["test_accuracy"] == 0.75


@pytest.mark.parametrize(
    ("kind", "where", "message"),
    [("tensorbord", "x", "did you mean 'tensorboard'"), ("mlflow", "", "write mlflow:PLACE")],
)
def test_wrong_writers(kind, where, message):
    with pytest.raises(TstarError, match=message):
        writer(kind, where)
