"""Small studies of digits, and an engine that does them in this process."""

import json
from dataclasses import replace

from tstar.lab.sweep.execute import Outcome, execute
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study


class InlineEngine:
    """Runs in this process, one after the other; ``lose`` makes the first runs vanish."""

    def __init__(self, slots=1, lose=0):
        self.slots, self.lose, self.closed = slots, lose, False
        self.jobs, self.executed, self.forgotten = [], [], []

    def submit(self, job):
        assert len(self.jobs) < self.slots
        self.jobs.append(job)

    def collect(self, timeout):
        job = self.jobs.pop(0)
        self.executed.append(job.spec.key)
        if self.lose > 0:
            self.lose -= 1
            return [Outcome(job.spec.key, "requeue", {"error": "gone"})]
        return [execute(job)]

    def forget(self, data):
        self.forgotten.append(data)

    def close(self):
        self.closed = True
        self.jobs.clear()


def finish(store, spec, accuracy=0.5, status="done"):
    store.put(spec, status, {"val_accuracy": accuracy, "curves": {"a": [1.0]}})


def with_own(spec, augment, source="0123456789abcdef"):
    """The run with an augmentation of one's own."""
    return replace(spec, augment=augment, source=source)


def rows_of(path):
    with Store(path) as store:
        return {row["key"]: row for row in store.rows()}


def do(study, path, engine, /, *, name=None, **options):
    """The runs of a study, which asks for them under a name if there is one."""
    with Store(path, create=True) as store:
        plan = make_plan(study, store)
        asked = {spec.key: {name: study.hash} for spec in plan.specs} if name else {}
        return run_sweep(replace(plan, asked=asked), store, engine, **options)


def tiny(extra="", **fields):
    fields = {"epochs": 1} | fields
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return parse_study(
        f"csg = false\n[training]\n{lines}\n"
        f'[[grid]]\ndataset = "digits"\nmodel = "mlp"\nnum_features = 8\n{extra}'
    )
