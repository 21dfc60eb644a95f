"""Finished runs into TensorBoard, MLflow or Weights & Biases: each writer is a callback for ``on_run``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, require, unknown
from tstar.sweep.columns import METRICS

Row = Mapping[str, Any]
_AT_ONCE = 100  # what MLflow takes in one call: 100 parameters, 1000 metrics
_SCORES = (
    *("val_accuracy", "test_accuracy", "train_loss", "val_loss", "nll", "ece", *METRICS),
    "seconds",
)


def writer(kind: str, where: str) -> Callable[[Row], None]:
    """``"tensorboard"`` or ``"mlflow"`` into the folder ``where``, ``"wandb"`` into the project ``where``."""
    makers = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}
    if kind not in makers:
        raise unknown("logger", kind, makers)
    if not where:
        raise TstarError(f"{kind} needs a place: write {kind}:PLACE.")
    return makers[kind](where)


def tensorboard(folder: str | Path) -> Callable[[Row], None]:
    """One log per run, with its curves, its hyperparameters and, under ``final/``, its scores."""
    make: Any = require("torch.utils.tensorboard", "log").SummaryWriter

    def write(row: Row) -> None:
        with make(str(Path(folder) / row["key"])) as log:
            for name, epoch, value in points(row):
                log.add_scalar(name, value, epoch)
            # Under names of their own: as points of the curves they would stand at step 0.
            final = {f"final/{name}": value for name, value in scores(row).items()}
            log.add_hparams(parameters(row), final, run_name=".")

    return write


def mlflow(folder: str | Path) -> Callable[[Row], None]:
    """One MLflow run per run, in the folder's ``mlflow.db``; the experiment is the study's name."""
    module: Any = require("mlflow", "mlflow")
    entities: Any = require("mlflow.entities", "mlflow")
    require("alembic", "mlflow")  # MLflow's database needs it
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    client = module.MlflowClient(f"sqlite:///{place}/mlflow.db")

    def write(row: Row) -> None:
        studies = row["studies"] or {}
        name = next((name for name, digest in studies.items() if digest is not None), "tstar")
        found = client.get_experiment_by_name(name)
        number = found.experiment_id if found else client.create_experiment(name, place.as_uri())
        run = client.create_run(number, run_name=row["key"]).info.run_id
        now = int(1000 * time.time())
        metrics = [entities.Metric(key, value, now, 0) for key, value in scores(row).items()]
        for key, epoch, value in points(row):
            metrics.append(entities.Metric(f"epoch/{key}", value, now, epoch))
        asked = [entities.Param(key, str(value)) for key, value in parameters(row).items()]
        for start in range(0, max(len(metrics), len(asked)), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            client.log_batch(run, metrics=metrics[some], params=asked[some])
        client.set_terminated(run, "FAILED" if row["status"] == "failed" else "FINISHED")

    return write


def wandb(project: str | Path) -> Callable[[Row], None]:
    """One W&B run per run."""
    module: Any = require("wandb", "wandb")

    def write(row: Row) -> None:
        run = module.init(project=str(project), id=row["key"], config=parameters(row), reinit=True)
        by_epoch: dict[int, dict[str, float]] = {}
        for name, epoch, value in points(row):
            by_epoch.setdefault(epoch, {})[name] = value
        for epoch, values in by_epoch.items():
            run.log(values, step=epoch)
        run.summary.update(scores(row))
        run.finish()

    return write


def points(row: Row) -> Iterator[tuple[str, int, float]]:
    """Every point of a run's learning curves: the curve's name, the epoch, the value."""
    curves = dict(row["curves"] or {})
    counted = curves.pop("epoch", None)  # of a training that was not measured after every epoch
    for name, values in curves.items():
        for epoch, value in zip(counted or range(1, len(values) + 1), values, strict=False):
            yield name, int(epoch), value


def parameters(row: Row) -> dict[str, Any]:
    """What the run was asked for, and how it ended; a number of steps overrides the epochs."""
    asked = {
        n: v for n, v in (row["spec"] or {}).items() if isinstance(v, bool | int | float | str)
    }
    if "steps" in asked:
        asked.pop("epochs", None)
    return asked | {"status": row["status"]}


def scores(row: Row) -> dict[str, float]:
    return {name: row[name] for name in _SCORES if row.get(name) is not None}
