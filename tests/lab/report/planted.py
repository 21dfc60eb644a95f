"""Stores with planted accuracies, written through the store's own interface."""

import math

import numpy as np

from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

TASKS = (("easy", 1.5, 10), ("middle", 6.7, 10), ("hard", 25.5, 100))
GRID = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
EPOCHS = 6


def accuracy(T, peak, top=0.9, chance=0.1):
    """What a planted run reaches before noise."""
    return max(top - 0.03 * math.log(T / peak) ** 2, chance)


def planted(
    tasks=TASKS,
    models=("resnet10",),
    widths=(64, 256),
    norms=("none", "batch"),
    grid=GRID,
    seeds=3,
    noise=0.004,
    methods=(),
    lr=(0.1,),
):
    """Rows of a store: a specification and what came out, for every run of a grid."""
    rng = np.random.default_rng(7)
    rows = []

    def row(spec, task, norm, T, value):
        _, csg, classes = task
        result = {
            "domain": "image",
            "samples": 1000,
            "num_classes": classes,
            "csg": csg,
            "norm": norm,
            "temperature": T,
            "epochs": EPOCHS,
            "steps": 40,
            "seconds": 1.5,
            "trainings": 1,
            "test_accuracy": float(np.clip(value + rng.normal(0, noise), 0, 1)),
            "val_accuracy": float(np.clip(value + rng.normal(0, noise), 0, 1)),
            "versions": {"tstar": "0.1", "torch": "2.9", "device": "cpu (a processor)"},
        }
        rows.append((spec, result))

    for task in tasks:
        for model in models:
            for M in widths:
                for rate in lr:
                    how = {"dataset": task[0], "model": model, "num_features": M}
                    how |= {"lr": rate, "epochs": EPOCHS}
                    for norm in norms:
                        peak = (0.5 if norm == "none" else 0.8) * math.sqrt(M)
                        for T in grid:
                            for seed in range(seeds):
                                spec = Spec(**how, seed=seed, temperature=T, norm=norm)
                                row(spec, task, norm, T, accuracy(T, peak, chance=1 / task[2]))
                    for method in methods:
                        for seed in range(seeds):
                            spec = Spec(**how, seed=seed, method=method)
                            row(spec, task, "none", None, 0.8)
    return rows


def write(path, rows, *, diverged=()):
    """Write rows into a store; those whose index is listed end as diverged, without accuracies."""
    with Store(path, create=True) as store:
        for i, (spec, result) in enumerate(rows):
            status = "diverged" if i in diverged else "done"
            if status == "diverged":
                result = result | {"test_accuracy": None, "val_accuracy": None}
            store.put(spec, status, result)
    return path


def rows(records, **wanted):
    """Test accuracies of the runs with these columns, straight from the store."""
    frame = records.frame
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    return frame["test_accuracy"].tolist()
