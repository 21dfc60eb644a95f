"""Runs of one's own, and tables as a terminal shows them."""

import io

from rich.console import Console

from tstar.report.tables.markup import to_rich
from tstar.report.tables.measured import own_table, printed_table


def run(dataset="gtsrb", accuracy=0.5, **facts):
    base = {"model": "resnet50", "num_features": 2048, "num_classes": 43, "csg": 1.39}
    base |= {"scenario": "finetune", "method": "fixed", "norm": "none", "temperature": 1.0}
    base |= {"status": "done", "seed": 0, "val_accuracy": 0.0, "test_accuracy": accuracy}
    return base | {"dataset": dataset} | facts


def shown(name, runs=None, metric="test", plain=True):
    stream = io.StringIO()
    console = Console(
        file=stream, width=400, force_terminal=not plain, color_system=None if plain else "standard"
    )
    for table in (printed_table(name), *([] if runs is None else [own_table(name, runs, metric)])):
        console.print(to_rich(table, plain=plain))
    return stream.getvalue()
