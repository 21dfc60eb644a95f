"""Finished runs into TensorBoard, MLflow or Weights & Biases: each writer is a callback for ``on_run``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, require, unknown

Row = Mapping[str, Any]
_SCORES = ("val_accuracy", "test_accuracy", "train_loss", "val_loss", "nll", "ece", "seconds")


def writer(kind: str, where: str) -> Callable[[Row], None]:
    """``"tensorboard"`` or ``"mlflow"`` into the folder ``where``, ``"wandb"`` into the project ``where``."""
    makers = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}
    if kind not in makers:
        raise unknown("logger", kind, makers)
    if not where:
        raise TstarError(f"{kind} needs a place, got none; write {kind}:PLACE.")
    return makers[kind](where)


def tensorboard(folder: str | Path) -> Callable[[Row], None]:
    """One log per run, with its curves, its hyperparameters and its scores."""
    make: Any = require("torch.utils.tensorboard", "log").SummaryWriter

    def write(row: Row) -> None:
        with make(str(Path(folder) / row["key"])) as log:
            for name, values in (row["curves"] or {}).items():
                for epoch, value in enumerate(values, 1):
                    log.add_scalar(name, value, epoch)
            log.add_hparams(parameters(row), scores(row), run_name=".")

    return write


def mlflow(folder: str | Path) -> Callable[[Row], None]:
    """One MLflow run per run, in a store of files below ``folder``; the experiment is the study's name."""
    module: Any = require("mlflow", "log")
    client = module.MlflowClient(f"sqlite:///{Path(folder).resolve()}/mlflow.db")
    Path(folder).mkdir(parents=True, exist_ok=True)

    def write(row: Row) -> None:
        name = next(iter(row["studies"] or {}), "tstar")
        found = client.get_experiment_by_name(name)
        place = Path(folder).resolve().as_uri()
        number = found.experiment_id if found else client.create_experiment(name, place)
        run = client.create_run(number, run_name=row["key"]).info.run_id
        for key, value in parameters(row).items():
            client.log_param(run, key, value)
        for key, values in (row["curves"] or {}).items():
            for epoch, value in enumerate(values, 1):
                client.log_metric(run, f"epoch/{key}", value, step=epoch)
        for key, value in scores(row).items():
            client.log_metric(run, key, value)
        client.set_terminated(run, "FAILED" if row["status"] == "failed" else "FINISHED")

    return write


def wandb(project: str | Path) -> Callable[[Row], None]:
    """One W&B run per run."""
    module: Any = require("wandb", "log")

    def write(row: Row) -> None:
        run = module.init(project=str(project), id=row["key"], config=parameters(row), reinit=True)
        curves = row["curves"] or {}
        for epoch in range(max(map(len, curves.values()), default=0)):
            run.log({n: v[epoch] for n, v in curves.items() if epoch < len(v)}, step=epoch + 1)
        run.summary.update(scores(row))
        run.finish()

    return write


def parameters(row: Row) -> dict[str, Any]:
    """What the run was asked for, and how it ended."""
    asked = {
        n: v for n, v in (row["spec"] or {}).items() if isinstance(v, bool | int | float | str)
    }
    return asked | {"status": row["status"]}


def scores(row: Row) -> dict[str, float]:
    return {name: row[name] for name in _SCORES if row.get(name) is not None}
