"""Hostile inputs at every door: formula, advice, csg, studies, coefficients, stores, npz, CSV, image folders, checkpoints.

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
import os
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
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, MEGABYTES = 10.0, 1024
ODD: list[Any] = [
    *(0, -1, 1, 2, 3.5, 1e-320, 1e308, 10**400, 2**63, 2**64, -0.0),
    *(math.nan, math.inf, -math.inf, True, False, None, "", "64", "\x00", "x" * 5000, b"64"),
    *([], {}, (), [64], {"a": 1}, set(), object(), complex(1, 1), Fraction(1, 3), Decimal("NaN")),
    *(np.float32(64), np.int8(-3), np.True_, np.array(64), np.array([64]), np.array("64")),
    *(np.float64("nan"), np.complex128(3), np.datetime64("2020-01-01"), range(3), len, Ellipsis),
]
TOKENS = [
    *("nan", "inf", "-inf", "1e999", "-1", "0", "10" * 30, "true", "null", '""', "[]", "{}", "'"),
    *("[" * 3000, "{" * 3000, "\x00", "\u202e", "🌡", "=1+1", "@x", "[/red]", "<script>", "../../x"),
    *("2020-01-01", "0x1F", "1_0", ",", ";", "\n", "=", "#", "\\", '"'),
]


class Wrong(Exception):
    """An answer that cannot be right."""


def number(rng: random.Random, low: float = 1e-3, high: float = 1e6) -> Any:
    """Mostly a sensible number, sometimes anything."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return value if rng.random() < 0.5 else max(1, round(value))


def whole(rng: random.Random) -> Any:
    """Mostly a whole number, as a width or a number of classes is."""
    return (
        number(rng, 1, 1e5)
        if rng.random() < 0.2
        else rng.choice((rng.randint(2, 300), 2 ** rng.randint(1, 14)))
    )


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled, overwritten: a few wounds."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(max(1, len(out))), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(6)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size] * rng.choice((1, 100))
        elif kind == 3:
            out[at : at + size] = rng.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * size
        elif kind == 4:
            out[at:at] = rng.randbytes(size)
        else:
            del out[at:]
    return bytes(out)


def mutated_text(text: str, rng: random.Random) -> str:
    """Words replaced, lines doubled, dropped and exchanged."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines)) if lines else 0
        kind = rng.randrange(5)
        if not lines or kind == 0:
            lines.insert(at, rng.choice(TOKENS))
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            del lines[at]
        else:
            words = lines[at].split(" ")
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
            lines[at] = " ".join(words)
    return "\n".join(lines)


def is_json(value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Wrong(f"not JSON: {error}") from error


def positive(value: float, what: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise Wrong(f"{what} = {value!r}")
    return float(value)


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


def npz(rng: random.Random, folder: Path) -> None:
    from tstar.data import load

    draw = np.random.default_rng(rng.randrange(2**32))
    shape = rng.choice([(4, 4, 3), (4, 4), (5,), (0,), (2, 2, 2, 2)])
    kind = rng.choice(["uint8", "float32", "float64", "int64", "complex64", "U2"])
    arrays: dict[str, Any] = {}
    for part, n in (("train", rng.randint(0, 20)), ("test", rng.randint(0, 8))):
        arrays[f"x_{part}"] = (draw.random((n, *shape)) * 255).astype(kind)
        y = draw.integers(0, 3, n)
        arrays[f"y_{part}"] = rng.choice(
            [y, y, y.astype(float), y * 10**7, y.astype("uint64") + 2**63, -y]
        )
    if rng.random() < 0.3:
        arrays.pop(rng.choice(list(arrays)))
    file = BytesIO()
    np.savez_compressed(file, **arrays)
    data = file.getvalue()
    path = folder / "data.npz"
    path.write_bytes(mutated(data, rng) if rng.random() < 0.6 else data)
    _sound(load(str(path)))


TEXTS = "label,text\n" + "".join(f"{i % 3},word{i} and more of it\n" for i in range(30))


def table(rng: random.Random, folder: Path) -> None:
    from tstar.data import load

    path = folder / "texts.csv"
    text = mutated_text(TEXTS, rng)
    path.write_bytes(
        mutated(text.encode(), rng) if rng.random() < 0.3 else text.encode("utf-8", "replace")
    )
    _sound(load(str(path)))


def _sound(data: Any) -> None:
    for part in ("train", "test"):
        x, y = getattr(data, f"x_{part}"), getattr(data, f"y_{part}")
        if len(x) != len(y) or (
            len(y) and not 0 <= int(y.min()) <= int(y.max()) < data.num_classes
        ):
            raise Wrong("labels outside the classes")


def images(rng: random.Random, folder: Path) -> None:
    import shutil

    from PIL import Image

    import tstar

    root = folder / "images"
    shutil.rmtree(root, ignore_errors=True)
    for label in range(rng.choice((0, 1, 2, 3, 3, 3))):
        target = root / rng.choice(
            [f"class {label}", f"[/red]{label}", f"{_turned()}{label}", ".hidden"]
        )
        target.mkdir(parents=True, exist_ok=True)
        for i in range(rng.choice((0, 1, 7, 7, 7))):
            file = BytesIO()
            mode, size = (
                rng.choice(["L", "RGB", "P", "RGBA", "1"]),
                (rng.randint(1, 9), rng.randint(1, 9)),
            )
            Image.new(mode, size, rng.randrange(2)).save(file, rng.choice(["PNG", "GIF"]))
            data = file.getvalue()
            name = f"{i}.{rng.choice(['png', 'png', 'png', 'gif', 'txt'])}"
            (target / name).write_bytes(mutated(data, rng) if rng.random() < 0.05 else data)
    float(tstar.csg(str(root)))


def _turned() -> str:
    """Turns the text after it around; nothing where a file's name cannot hold it (an ASCII locale)."""
    try:
        os.fsencode("\u202e")
    except UnicodeEncodeError:
        return ""
    return "\u202e"


def checkpoint(rng: random.Random, folder: Path) -> None:
    import torch
    from safetensors.torch import save

    import tstar
    from tstar.cli.fold_commands import _load
    from tstar.surgery.checkpoints import find_state_dict, fold_state_dict

    torch.manual_seed(0)
    model = tstar.temper(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), 2.0)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    name = rng.choice(list(state))
    kind = rng.randrange(4)
    if kind == 0:
        state.pop(name)
    elif kind == 1:
        state[name] = state[name].double() * rng.choice([math.nan, math.inf, -1, 0])
    elif kind == 2:
        state[name] = state[name].reshape(-1)[:1]
    if rng.random() < 0.5:
        path, data = (
            folder / "model.safetensors",
            save({k: v.contiguous() for k, v in state.items()}),
        )
    else:
        file = BytesIO()
        torch.save(state, file)
        path, data = folder / "model.pt", file.getvalue()
    path.write_bytes(mutated(data, rng) if kind == 3 else data)
    saved, _ = _load(path)
    folded = fold_state_dict(find_state_dict(saved))
    folded = folded[0] if isinstance(folded, tuple) else folded
    if kind == 3:
        return  # a flipped bit of a weight is another weight
    for key, value in folded.items():
        if key.startswith("1.") and value.is_floating_point() and not value.isfinite().all():
            raise Wrong(f"{key} is not finite")


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
