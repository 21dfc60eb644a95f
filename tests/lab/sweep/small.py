"""Small studies of digits, done in this process."""

import json
from dataclasses import replace

from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study


def finish(store, spec, accuracy=0.5, status="done"):
    store.put(spec, status, {"val_accuracy": accuracy, "curves": {"a": [1.0]}})


def with_own(spec, augment, source="0123456789abcdef"):
    """The run with an augmentation of one's own."""
    return replace(spec, config=replace(spec.config, augment=augment), source=source)


def rows_of(path):
    with Store(path) as store:
        return {row["key"]: row for row in store.rows()}


def do(study, path, engine, /, **options):
    with Store(path, create=True) as store:
        return run_sweep(make_plan(study, store), store, engine, **options)


def tiny(extra="", **fields):
    fields = {"epochs": 1} | fields
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return parse_study(
        f"csg = false\n[training]\n{lines}\n"
        f'[[grid]]\ndataset = "digits"\nmodel = "mlp"\nnum_features = 8\n{extra}'
    )
