"""Through how many files of ``src/tstar`` one use goes, and how often it changes from one to another.

python benchmarks/paths.py   # PYTHONPATH=…/src counts another version
"""

import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

import tstar
from tstar.lab.sweep import run
from tstar.lab.sweep.execute import execute

PACKAGE = str(Path(tstar.__file__).parent)


def trace(use: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[list[str], Any]:
    """The file of each call within the package, in order, and the result."""
    entered: list[str] = []

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.append(frame.f_code.co_filename.removeprefix(PACKAGE)[1:])

    sys.setprofile(look)
    result = use(*args, **keywords)
    sys.setprofile(None)
    return entered, result


def main() -> None:
    x, labels = torch.randn(256, 1, 8, 8), torch.arange(256) % 10
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, labels), batch_size=32)
    study: Any = {"name": "paths", "csg": False, "training": {"steps": 5}}
    study["grid"] = [{"dataset": "digits", "model": "mlp", "norm": "batch", "temperature": 4.0}]
    ended: list[Any] = []
    inline: Any = type("Inline", (), {"slots": 1, "forget": lambda *_: None})()  # in this process
    inline.submit, inline.collect = lambda job: ended.append(execute(job)), lambda _: [ended.pop()]
    inline.close = ended.clear
    run.make_engine = lambda *_: inline
    recommend, fold = tstar.recommend, tstar.fold
    for counted in (False, True):  # what is imported or cached on first use does not count
        layers = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)
        model = nn.Sequential(*layers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        uses, how = {}, {"optimizer": optimizer, "example_input": x}
        uses["recommend"], advice = trace(recommend, model, loader, epochs=3, **how)
        uses["apply"], model = trace(advice.apply, model, **how)
        model(x)
        uses["fold"], _ = trace(fold, model.eval())
        with tempfile.TemporaryDirectory() as folder:
            uses["study to store"], _ = trace(run.run_study, study, f"{folder}/runs.db")
        for name, entered in uses.items() if counted else ():
            files, changes = dict.fromkeys(entered), sum(a != b for a, b in pairwise(entered))
            print(f"{name}: {len(files)} files, {changes} changes: {' '.join(files)}")


if __name__ == "__main__":
    main()
