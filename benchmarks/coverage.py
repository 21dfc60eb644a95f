"""Does tstar work on every classifier people use? One row a model, resumed where it stopped.

    python benchmarks/coverage.py run all                  # the whole table; or torchvision, timm, transformers
    python benchmarks/coverage.py run timm --minutes 60    # stops after an hour; the same command goes on
    python benchmarks/coverage.py run timm --again failed  # runs the failures once more
    python benchmarks/coverage.py summary                  # writes results/coverage/README.md

Every model is taken through ``coverage_contract.check`` in a process of its own, forked from one that has the
libraries loaded, so that a crash, a hang or a full memory costs one model.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gc
import importlib
import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from coverage_contract import Broken, check, tensors
from coverage_models import (
    HUGE,
    NoClassifier,
    NotBuilt,
    timm_family,
    timm_model,
    timm_names,
    torchvision_model,
    torchvision_names,
)
from tstar.errors import TstarError

RESULTS = Path(__file__).resolve().parents[1] / "results" / "coverage"
LIBRARIES = ("torchvision", "transformers", "timm")
COLUMNS = [
    *("model", "family", "parameters", "device", "input", "outcome", "head", "kind", "M", "K"),
    *("bias_added", "argument", "difference", "seconds", "reason", "torch", "library"),
]
REAL_LIMIT = 100_000_000  # parameters up to which every model takes a real step
FIRST_LIMIT = 400_000_000  # parameters up to which the smallest of a family does


def row(build: Callable[[], tuple[nn.Module, Any, int | None]]) -> dict[str, Any]:
    """Build one model and check it; the outcome is a word, the reason a sentence."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    seen: dict[str, Any] = {}
    started = time.process_time()
    try:
        model, example, declared = build()
        seen["parameters"] = sum(p.numel() for p in model.parameters())
        seen["input"] = " ".join("×".join(map(str, t.shape)) for t in tensors(example))
        seen |= check(model, example, declared_features=declared) | {"outcome": "passed"}
    except NoClassifier as error:
        seen |= {"outcome": "no classifier", "reason": str(error)}
    except NotBuilt as error:
        seen |= {"outcome": "not built", "reason": str(error)}
    except TstarError as error:
        seen |= {"outcome": "failed", "reason": str(error)}
        with contextlib.suppress(
            Exception
        ):  # would the argument that the message names have done it?
            seen |= check(model, example, declared_features=declared, hint=example)
            seen |= {"outcome": "with help", "argument": "example_input=…"}
    except Broken as error:
        seen |= {"outcome": "failed", "reason": str(error)}
    except Exception as error:
        seen |= {"outcome": "failed", "reason": f"{type(error).__name__}: {error}"}
    seen["reason"] = " ".join(str(seen.get("reason", "")).split())[:300]
    return seen | {"seconds": f"{time.process_time() - started:.1f}"}


def apart(build: Callable[[], tuple[nn.Module, Any, int | None]], seconds: float) -> dict[str, Any]:
    """``row`` in a forked process that may use so many seconds of a processor and may die."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        sender.send(row(build))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        # A busy machine may give little of a processor: the clock on the wall gets twenty times as long.
        if receiver.poll(20 * seconds):
            return receiver.recv()  # type: ignore[no-any-return]
        return {"outcome": "failed", "reason": f"not done after {20 * seconds:.0f} s"}
    except EOFError:
        process.join()
        return {"outcome": "failed", "reason": f"the process died ({process.exitcode})"}
    finally:
        process.kill()
        process.join()


def warm_up(library: str) -> None:
    """Load, before the forks, what every model's process would load again."""
    importlib.import_module(library)
    if library == "transformers":
        importlib.import_module("transformers.modeling_utils")
        importlib.import_module("transformers.models.auto.modeling_auto")
        importlib.import_module("transformers.models.llama.modeling_llama")
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 13))
    row(lambda: (model, torch.randn(2, 4), None))


def plan(library: str) -> list[tuple[str, str, str, Callable[[], Any]]]:
    """(model, family, device, how to build it) for every model, in the order in which they are run."""
    if library == "torchvision":
        devices = {n: "meta" if n in HUGE else "cpu" for n in torchvision_names()}
        return [(n, "", d, lambda n=n, d=d: torchvision_model(n, d)) for n, d in devices.items()]
    if library == "transformers":
        from coverage_transformers import transformers_model, transformers_names

        return [
            (n, n.partition("/")[0], "cpu", lambda n=n: transformers_model(n))
            for n in transformers_names()
        ]
    sizes = timm_parameters()
    ordered = sorted(timm_names(), key=lambda n: sizes[n])
    first = {timm_family(n): n for n in reversed([n for n in ordered if sizes[n] > REAL_LIMIT])}
    jobs = []
    for name in ordered:
        family, size = timm_family(name), sizes[name]
        real = size <= REAL_LIMIT or (first[family] == name and size <= FIRST_LIMIT)
        device = "cpu" if real else "meta"
        jobs.append((name, family, device, lambda n=name, d=device: timm_model(n, d)))
    return jobs


def timm_parameters() -> dict[str, int]:
    """The number of parameters of every timm model, counted once on the meta device and kept in a file."""
    import timm

    path = RESULTS / f"timm-{timm.__version__}-parameters.csv"
    if not path.exists():
        sizes = {}
        for name in timm_names():
            with torch.device("meta"):
                sizes[name] = sum(p.numel() for p in timm.create_model(name).parameters())
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(sizes.items())
    with path.open(newline="", encoding="utf-8") as file:
        return {name: int(size) for name, size in csv.reader(file)}


def run(library: str, minutes: float, seconds: float, again: list[str], only: str) -> None:
    version = importlib.import_module(library).__version__.partition("+")[0]
    path = RESULTS / f"{library}-{version}.csv"
    rows = read(path)
    done = {r["model"] for r in rows if r["outcome"] not in again}
    jobs = [job for job in plan(library) if job[0] not in done and only in job[0]]
    # Every ninth in turn, each from the smallest up: whatever is done is a fair picture of the whole.
    jobs = [job for start in range(9) for job in jobs[start::9]]
    if again:
        write(path, [r for r in rows if r["model"] in done or only not in r["model"]])
    warm_up(library)
    gc.freeze()  # the children share these pages
    until = time.monotonic() + 60 * minutes
    for count, (name, family, device, build) in enumerate(jobs, 1):
        if time.monotonic() > until:
            print(f"out of time: {len(jobs) - count + 1} of {len(jobs)} left")
            break
        result = {"model": name, "family": family, "device": device, "library": version}
        result |= apart(build, seconds) | {"torch": torch.__version__.partition("+")[0]}
        append(path, result)
        print(count, len(jobs), name, result["outcome"], result.get("reason", ""), flush=True)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def append(path: Path, result: dict[str, Any]) -> None:
    if not path.exists():
        write(path, [])
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore").writerow(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "summary"))
    parser.add_argument("library", nargs="?", choices=(*LIBRARIES, "all"))
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so many minutes")
    parser.add_argument("--seconds", type=float, default=120, help="of a processor, for one model")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes to run once more")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.action == "summary":
        from coverage_summary import summarize

        summarize(RESULTS)
        return
    if options.library is None:
        parser.error("which library?")
    for library in LIBRARIES if options.library == "all" else [options.library]:
        run(library, options.minutes, options.seconds, options.again, options.only)


if __name__ == "__main__":
    main()
