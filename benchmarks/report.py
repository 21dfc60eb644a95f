"""How long does a report of tens of thousands of runs take, and does its page stay responsive?

The runs are SYNTHETIC: a planted curve with noise, put into a store through its own interface. They serve
to measure time and size, and say nothing about temperatures.

1. ``tstar report`` on the store, in a process of its own: wall and processor time, largest memory, size of
   the page.
2. The page in the system's chromium, headless: until it is ready, then sorting each kind of column,
   filtering, scrolling and a click on a run. An interaction ends when the browser has drawn what it
   changed; the 120 ms that the filter waits for the next letter are not counted.

    OMP_NUM_THREADS=1 python benchmarks/report.py --output results/report/benchmark.json
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tstar.lab.sweep.provenance import commit, versions
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store
from tstar.lab.training.config import Config

ROOT = Path(__file__).resolve().parents[1]
GRID = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)
MODELS = ("vgg9", "resnet10", "pyramidnet10")
SEEDS = 3
# So many interactions of each kind; the median and the slowest are told.
REPEATS = 7


def specs(count: int, epochs: int) -> Iterator[Spec]:
    """Grids of T × M with and without BN, one data set after the other, until there are enough."""
    config, made, task = Config(epochs=epochs), 0, 0
    while True:
        for model in MODELS:
            for M in WIDTHS:
                for norm in ("none", "batch"):
                    for T in GRID:
                        for seed in range(SEEDS):
                            if made == count:
                                return
                            made += 1
                            name = f"synthetic-{task:02d}"
                            yield Spec(name, model, seed, None, M, "fixed", T, norm, config=config)
        task += 1


def fill(path: Path, wanted: Iterator[Spec], epochs: int) -> None:
    """A store of synthetic runs, each with learning curves of ``epochs`` points."""
    random = np.random.default_rng(0)
    rise = 1 - np.exp(-np.arange(1, epochs + 1) / (epochs / 6))
    about = json.dumps(versions("cpu"))
    with Store(path, create=True) as store:
        # Thousands of small commits measure the disk, not the report.
        store._db.execute("PRAGMA synchronous = OFF")
        for number, spec in enumerate(wanted):
            task = int(spec.dataset.removeprefix("synthetic-"))
            classes, csg = (2, 10, 37, 100)[task % 4], 1.5 * 1.35**task
            assert spec.temperature is not None
            assert spec.num_features is not None
            distance = math.log(spec.temperature / (0.5 * math.sqrt(spec.num_features)))
            top = max(0.9 - 0.02 * task - 0.02 * distance**2, 1 / classes) + random.normal(0, 0.01)
            top = min(max(top, 0.0), 1.0)
            noise = random.normal(0, 0.01, (4, epochs))
            curves = {
                "train_accuracy": np.clip(top * rise + noise[0], 0, 1),
                "val_accuracy": np.clip(top * rise + noise[1], 0, 1),
                "train_loss": 2.3 * (1.05 - top * rise) + noise[2],
                "val_loss": 2.4 * (1.05 - top * rise) + noise[3],
            }
            described = spec.to_dict()
            store.insert(
                described
                | {"key": spec.key, "status": "done", "attempts": 1}
                | {"spec": json.dumps(described), "domain": "image", "num_train": 50_000}
                | {"num_classes": classes, "csg": csg, "steps": 390 * epochs, "trainings": 1}
                | {"val_accuracy": float(curves["val_accuracy"][-1]), "test_accuracy": top}
                | {"nll": 2.3 * (1.05 - top), "ece": abs(float(random.normal(0, 0.02)))}
                | {"seconds": 600.0, "finished": 1.8e9 + number, "versions": about}
                | {"curves": json.dumps({k: v.round(5).tolist() for k, v in curves.items()})}
            )


def report(store: Path, folder: Path, formats: str, fits: bool) -> dict[str, Any]:
    """Time, memory and sizes of ``tstar report``."""
    words = [sys.executable, "-m", "tstar", "report", str(store), "-o", str(folder)]
    words += ["--formats", formats, *([] if fits else ["--no-fits"])]
    started = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "seconds": round(seconds, 1),
        # What an idle machine would take: others may be at work on this one.
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "memory_mb": round(used.ru_maxrss / 1024),
        "page_mb": round((folder / "index.html").stat().st_size / 1e6, 2),
        "folder_mb": round(size / 1e6, 1),
    }


# Runs a function in the page and waits for two frames: the first is asked for, the second is there.
_TIMED = """(work) => new Promise((done) => {
  const start = performance.now();
  Promise.resolve(eval(work)).then(() =>
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))));
})"""
WORK = {
    "nothing (two frames)": "0",
    "sort by a number": "document.querySelectorAll('#grid thead th')[{number}].click()",
    "sort by a name": "document.querySelectorAll('#grid thead th')[{name}].click()",
    "sort by the run's key": "document.querySelectorAll('#grid thead th')[0].click()",
    "filter: a word": "filterRuns('synthetic-0{i}')",
    "filter: three columns": "filterRuns('resnet10 t:{T} norm:batch')",
    "filter: nothing found": "filterRuns('nothing{i}')",
    "filter: off": "filterRuns('')",
    "scroll": "grid.scrollTop = {i} * 90000",
    "click on a run": "show({i} * 4000)",
    "sort the table of conditions": "document.querySelector('#table-conditions thead th:nth-child(2)').click()",
}


def browse(page_file: Path) -> dict[str, Any]:
    """Milliseconds of each interaction, median and slowest."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("This part needs the system's chromium: apt-get install chromium")
    found: dict[str, Any] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        started = time.perf_counter()
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        found["open_ms"] = round(1000 * (time.perf_counter() - started))
        labels = page.evaluate("columns.map((c) => c.name)")
        places = {"number": labels.index("test_accuracy"), "name": labels.index("dataset")}
        first = page.evaluate(_TIMED, "show(0)")
        found["first_click_ms"] = round(first)
        for what, work in WORK.items():
            times = [
                page.evaluate(_TIMED, work.format(i=i, T=GRID[i % len(GRID)], **places))
                for i in range(REPEATS)
            ]
            found[what] = {
                "median_ms": round(statistics.median(times)),
                "max_ms": round(max(times)),
            }
        found["elements"] = page.evaluate("document.querySelectorAll('*').length")
        heap = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize : 0")
        found["javascript_mb"] = round(heap / 1e6, 1)
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30_000)
    parser.add_argument("--epochs", type=int, default=200, help="points of each learning curve")
    parser.add_argument("--formats", default="svg")
    parser.add_argument("--no-fits", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the store and the report")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        store = folder / f"synthetic-{given.runs}.db"
        if not store.exists():
            fill(store, specs(given.runs, given.epochs), given.epochs)
        numbers: dict[str, Any] = {
            "command": " ".join(["python", *sys.argv]),
            "runs": given.runs,
            "epochs": given.epochs,
            "store_mb": round(store.stat().st_size / 1e6, 1),
            "report": report(store, folder / "report", given.formats, not given.no_fits),
        }
        numbers["page"] = browse(folder / "report" / "index.html")
    write(numbers, given.output)


def write(numbers: dict[str, Any], output: Path | None) -> None:
    numbers |= {"commit": commit(), "versions": versions("cpu")}
    text = json.dumps(numbers, indent=2, ensure_ascii=False) + "\n"
    print(text, end="")
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
