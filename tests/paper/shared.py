"""Runs of one's own, and tables as a terminal shows them."""

import io

from rich.console import Console

from tstar.paper.printing import render


def run(dataset="gtsrb", accuracy=0.5, **facts):
    base = {"model": "resnet50", "num_features": 2048, "num_classes": 43, "csg": 1.39}
    base |= {"scenario": "finetune", "method": "fixed", "norm": "none", "temperature": 1.0}
    base |= {"status": "done", "seed": 0, "val_accuracy": 0.0, "test_accuracy": accuracy}
    return base | {"dataset": dataset} | facts


def shown(*args, plain=True, **options):
    stream = io.StringIO()
    console = Console(
        file=stream, width=400, force_terminal=not plain, color_system=None if plain else "standard"
    )
    for table in render(*args, plain=plain, **options):
        console.print(table)
    return stream.getvalue()
