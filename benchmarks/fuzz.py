"""Hostile inputs at every door: formula, advice, csg, studies, coefficients, stores, npz, CSV, image folders, checkpoints, models.

An input may be answered or refused with a ``TstarError``. A finding is anything else: another exception, a wrong number
(an answer that is not finite, not JSON, out of its range, or not what an independent formula gives), more than 10 s of processor
time or no answer in a long time, or a peak of more than 1 GB over what importing takes. Inputs are drawn by seed: (door, number) is one input on any machine.

    python benchmarks/fuzz.py --inputs 100000 --minutes 15 --output results/reliability/fuzz.json
    python benchmarks/fuzz.py --door npz --number 17         one input again, with its traceback
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import queue
import random
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_files import checkpoint, images, npz, table
from fuzz_inputs import ODD, Wrong, is_json, mutated, mutated_text, number, positive, whole
from fuzz_models import schedule, surgery, where

SECONDS, MEGABYTES = 10.0, 1024


def training(rng: random.Random) -> dict[str, Any]:
    """Some of the facts of a training."""
    optimizer = rng.choice(["sgd", "adam", "adamw", "SGD", "lion", ("sgd", 0.1), ("sgd", math.nan)])
    drawn = {
        "optimizer": optimizer if rng.random() < 0.8 else rng.choice(ODD),
        "lr": number(rng, 1e-5, 10),
        "steps": whole(rng),
        "momentum": number(rng, 0.01, 0.99),
        "batch_size": whole(rng),
    }
    return {key: value for key, value in drawn.items() if rng.random() < 0.4}


def formula(rng: random.Random, folder: Path) -> None:
    import tstar

    m, k, csg = whole(rng), whole(rng), number(rng, 1e-3, 1e4)
    options: dict[str, Any] = {} if rng.random() < 0.5 else training(rng)
    if rng.random() < 0.3:
        options["variant"] = rng.choice(["base", "csg", "cn", "csgcn", *ODD])
    explained = tstar.explain(m, k, csg, **options)
    value = positive(explained.temperature, "T")
    if tstar.temperature(m, k, csg, **options) != value:
        raise Wrong("temperature and explain differ")
    is_json(explained.to_dict())
    str(explained)
    if (
        options.get("variant") == "csgcn"
        and not options.keys() - {"variant"}
        and explained.clipped is None
    ):
        own = 0.3192 * math.sqrt(m) + 20.74 + 3.746 * math.log(float(csg)) - 7.38 * math.log(k)
        if not math.isclose(own, value, rel_tol=1e-9):
            raise Wrong(f"{value} for {own}")


def advice(rng: random.Random, folder: Path) -> None:
    import torch

    import tstar

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    options = training(rng)
    for name, low, high in (("num_classes", 2, 100), ("csg", 0.01, 100)):
        if rng.random() < 0.3:
            options[name] = number(rng, low, high)
    if rng.random() < 0.1:
        options[rng.choice(["variant", "norm", "head", "coefficients", "loss"])] = rng.choice(ODD)
    given = tstar.recommend(model, **options)
    positive(given.temperature, "T")
    is_json(given.to_dict())
    str(given)


def difficulty(rng: random.Random, folder: Path) -> None:
    import tstar

    draw = np.random.default_rng(rng.randrange(2**32))
    classes, each = rng.randint(1, 5), rng.randint(1, 12)
    shape = rng.choice([(3,), (1,), (0,), (4, 4), (2, 3, 3), (3, 2, 2), ()])
    kind = rng.choice(
        ["float32", "float64", "uint8", "int64", "bool", "float16", "complex64", "O", "U3"]
    )
    x: Any = (draw.normal(size=(classes * each, *shape)) * rng.choice([1, 100, 1e30])).astype(kind)
    y: Any = np.repeat(np.arange(classes), each)
    if rng.random() < 0.3:
        y = rng.choice(
            [y.astype(str), y[:-1], y.astype(float), y * 10**17, -y, y.reshape(-1, 1), None]
        )
    if kind.startswith("float") and x.size and rng.random() < 0.3:
        x.flat[rng.randrange(x.size)] = rng.choice([math.nan, math.inf, 1e-40])
    if rng.random() < 0.1:
        x = rng.choice(
            [*ODD, list(x), [x, x], {"x": x, "y": y}, np.ma.masked_greater(np.ones(3), 0)]
        )
    options = {}
    if rng.random() < 0.2:
        options[rng.choice(["samples", "neighbors", "seed", "size", "repeats"])] = number(
            rng, 1, 300
        )
    found = tstar.csg(x, y, **options)
    k = len(np.unique(np.asarray(y).astype(str)))
    if not -1e-6 <= float(found) <= k - 1 + 1e-6:
        raise Wrong(f"csg = {float(found)} of {k} classes")
    is_json(found.to_dict())


STUDY = """name = "x"
[training]
epochs = 2
batch_size = 32
val_fraction = 0.1
[[grid]]
dataset = "digits"
model = "resnet10"
num_features = [16, 64]
norm = ["none", "batch"]
temperature = [1, 2.5, 8]
lr = 0.1
seeds = 2
[[grid]]
dataset = "digits"
model = "mlp"
method = ["default", "ours-cn"]
seeds = [3, 4]
"""


def study(rng: random.Random, folder: Path) -> None:
    from tstar.sweep.study import parse_study

    for spec in parse_study(mutated_text(STUDY, rng)).specs:
        if spec.temperature is not None:
            positive(spec.temperature, "T")


def coefficients(rng: random.Random, folder: Path) -> None:
    import tstar
    from tstar.formula.coefficients import get

    path = folder / "set.json"
    good = {
        "format": 1,
        "name": "x",
        "alpha": 0.4,
        "beta": 6.5,
        "gamma": 0,
        "delta": -2,
        "minimum": 1,
        "maximum": 512,
    }
    source = folder / "good.json"
    if not source.exists():
        get("csgcn").save(source)
    text = rng.choice([source.read_text(encoding="utf-8"), json.dumps(good, indent=1)])
    path.write_text(mutated_text(text, rng), encoding="utf-8")
    positive(tstar.temperature(64, 10, 3.0, coefficients=str(path)), "T")


def store(rng: random.Random, folder: Path) -> None:
    from tstar.sweep.transfer import load_runs

    good, path = folder / "good.db", folder / "runs.db"
    if not good.exists():
        _make_store(good)
    path.write_bytes(good.read_bytes())
    if rng.random() < 0.5:
        path.write_bytes(mutated(good.read_bytes(), rng))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            names = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
            cell = rng.choice(
                [b"\x00", "x", -1, 1e308, 2**60, "nan", "{", "[/x]", "\u202e", None, ""]
            )
            try:
                db.execute(f'UPDATE OR IGNORE runs SET "{rng.choice(names)}" = ?', (cell,))
            except sqlite3.Error:
                return
    load_runs(path)


def _make_store(path: Path) -> None:
    """Three runs of a tiny study, really done."""
    from tstar.sweep import sweep

    text = STUDY.split("[[grid]]")[0].replace("epochs = 2", "epochs = 1") + (
        '[[grid]]\ndataset = "digits"\ntrain_samples = 40\nmodel = "resnet10"\nnum_features = 8\n'
        'norm = "batch"\ntemperature = [1, 4, 8]\nseeds = 1\n'
    )
    written = path.with_suffix(".toml")
    written.write_text(text, encoding="utf-8")
    sweep(written, path, workers=1)


Door = Callable[[random.Random, Path], None]
DOORS: dict[str, tuple[Door, float]] = {  # with the share of the inputs
    "formula": (formula, 0.55),
    "advice": (advice, 0.1),
    "study": (study, 0.1),
    "coefficients": (coefficients, 0.1),
    "npz": (npz, 0.05),
    "table": (table, 0.05),
    "checkpoint": (checkpoint, 0.02),
    "csg": (difficulty, 0.02),
    "store": (store, 0.005),
    "images": (images, 0.005),
    "surgery": (surgery, 0.01),
    "schedule": (schedule, 0.01),
    "where": (where, 0.03),
}


def attempt(door: str, which: int, folder: Path) -> str:
    """ "answered", "refused", or what was found."""
    from tstar.errors import TstarError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            DOORS[door][0](random.Random(f"{door} {which}"), folder)
    except TstarError as error:
        return "refused" if str(error).strip() else "an empty message"
    except Wrong as error:
        return f"wrong: {error}"
    except Exception as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        where = f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last else "?"
        return f"{type(error).__name__} at {where}: {str(error)[:200]}"
    return "answered"


def _peak() -> float:
    """The largest memory of this process so far, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )


def _work(inputs: list[tuple[str, int]], results: Any) -> None:
    import tstar

    tstar.csg(
        np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    )  # everything imported
    with tempfile.TemporaryDirectory() as folder:
        _make_store(Path(folder) / "good.db")
        base = _peak()
        for door, which in inputs:
            results.put((door, which, None, 0.0, 0.0))
            begun = time.process_time()
            outcome = attempt(door, which, Path(folder))
            seconds, over = time.process_time() - begun, _peak() - base
            if seconds > SECONDS:
                outcome = f"{seconds:.0f} s of processor time; {outcome}"
            if over > MEGABYTES:
                outcome, base = f"a peak of {over:.0f} MB; {outcome}", _peak()
            results.put((door, which, outcome, seconds, over))
    results.put(None)


def run(inputs: list[tuple[str, int]], minutes: float) -> dict[str, Any]:
    """Every input in a process of its own that is watched, and replaced where it hangs or dies."""
    context = multiprocessing.get_context("spawn")
    counts: dict[str, Counter[str]] = {door: Counter() for door in DOORS}
    findings: list[dict[str, Any]] = []
    start, at, longest, highest = time.monotonic(), 0, 0.0, 0.0
    while at < len(inputs) and time.monotonic() - start < 60 * minutes:
        results = context.Queue()
        worker = context.Process(target=_work, args=(inputs[at:], results))
        worker.start()
        begun, pending = time.monotonic() + 120, None  # the first message comes after the imports
        while True:
            try:
                message = results.get(timeout=1.0)
            except queue.Empty:
                waited = time.monotonic() - begun
                if (
                    worker.is_alive() and waited < SECONDS * 30
                ):  # a busy machine may be this slow; what is judged is processor time
                    continue
                text = f"no answer in {waited:.0f} s" if worker.is_alive() else "died"
                message = (*pending, text, waited, 0.0) if pending else None
            if message is None:
                break
            door, which, outcome, seconds, over = message
            if outcome is None:
                begun, pending = time.monotonic(), (door, which)
                continue
            longest, highest = max(longest, seconds), max(highest, over)
            at += 1
            counts[door][outcome if outcome in ("answered", "refused") else "found"] += 1
            if outcome not in ("answered", "refused"):
                findings.append({"door": door, "number": which, "what": outcome})
            if (
                outcome == "died"
                or outcome.startswith("no answer")
                or time.monotonic() - start > 60 * minutes
            ):
                break
        worker.kill()
        worker.join()
        if message is None and at < len(inputs) and pending is None:
            break
    return {
        "inputs": at,
        "minutes": round((time.monotonic() - start) / 60, 1),
        "limits": {"seconds": SECONDS, "megabytes": MEGABYTES},
        "longest_seconds": round(longest, 2),
        "highest_megabytes": round(highest),
        "counts": {door: dict(sorted(count.items())) for door, count in counts.items() if count},
        "findings": findings,
    }


def draw(total: int, seed: int) -> list[tuple[str, int]]:
    """Inputs of every door in its share, shuffled."""
    inputs = [
        (door, seed * 10**9 + i)
        for door, (_, share) in DOORS.items()
        for i in range(math.ceil(total * share))
    ]
    random.Random(seed).shuffle(inputs)
    return inputs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--door", choices=DOORS)
    parser.add_argument("--number", type=int)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.number is not None:
        with tempfile.TemporaryDirectory() as folder:
            DOORS[options.door][0](random.Random(f"{options.door} {options.number}"), Path(folder))
        return 0
    inputs = [i for i in draw(options.inputs, options.seed) if options.door in (None, i[0])]
    report = {
        "command": " ".join(["python", *sys.argv]),
        "seed": options.seed,
        **run(inputs, options.minutes),
    }
    kinds = Counter((f["door"], f["what"].split(":")[0]) for f in report["findings"])
    print(json.dumps({k: v for k, v in report.items() if k != "findings"}, indent=1))
    for (door, what), n in kinds.most_common():
        example = next(
            f for f in report["findings"] if f["door"] == door and f["what"].startswith(what)
        )
        print(
            f"{n:6} {door}: {example['what'][:160]}  (--door {door} --number {example['number']})"
        )
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        report["findings"] = report["findings"][:200]
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        options.output.write_text(text, encoding="utf-8")
    return int(bool(report["findings"]))


if __name__ == "__main__":
    sys.exit(main())
