"""Finished runs into TensorBoard, MLflow or Weights & Biases: tstar sweep … --on-run ./callbacks.py:tensorboard."""

from collections.abc import Mapping
from typing import Any

Run = Mapping[str, Any]


def tensorboard(run: Run) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(f"logs/{run['key']}") as log:
        for name, values in (run["curves"] or {}).items():
            for epoch, value in enumerate(values, 1):
                log.add_scalar(name, value, epoch)


def mlflow(run: Run) -> None:
    import mlflow

    with mlflow.start_run(run_name=run["key"]):
        mlflow.log_params(run["spec"])
        if run["test_accuracy"] is not None:
            mlflow.log_metric("test_accuracy", run["test_accuracy"])


def wandb(run: Run) -> None:
    import wandb

    with wandb.init(project="tstar", id=run["key"], config=dict(run["spec"])) as log:
        log.summary["test_accuracy"] = run["test_accuracy"]
