"""Wounded files and strange numbers: formula, advice, coefficients, studies, stores, npz, CSV, image folders, checkpoints.

An input may be answered, or refused with a ``TstarError``. A finding is anything else: another exception, or an answer
that cannot be right. Inputs are drawn by seed: (door, number) is one input on any machine.

    python benchmarks/fuzz.py --inputs 100000 --minutes 15 --output results/reliability/fuzz.json
    python benchmarks/fuzz.py --door npz --number 17         one input again, with its traceback
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

ODD = (0, -1, 3.5, 1e-320, 1e308, 10**400, 2**63, math.nan, math.inf, -math.inf, None, "64")
TOKENS = [
    *("nan", "inf", "-inf", "1e999", "-1", "0", "10" * 30, "true", "null", '""', "[]", "{}", "'"),
    *("[" * 3000, "\x00", "\u202e", "🌡", "=1+1", "@x", "[/red]", "<script>", "../../x"),
    *("2020-01-01", "0x1F", "1_0", ",", ";", "\n", "=", "#", "\\", '"'),
]
STUDY = """name = "x"
csg = false
[training]
epochs = 1
batch_size = 32
[[grid]]
dataset = "digits"
train_samples = 40
model = "resnet10"
num_features = 8
norm = "batch"
temperature = [1, 4, 8]
seeds = 1
"""
TEXTS = "label,text\n" + "".join(f"{i % 3},word{i} and more of it\n" for i in range(30))


class Wrong(Exception):
    """An answer that cannot be right."""


def number(rng: random.Random, low: float, high: float) -> Any:
    """Mostly a sensible number, sometimes an odd one."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return value if rng.random() < 0.3 else max(1, round(value))


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled, overwritten: a few wounds."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(max(1, len(out))), rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(5)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size] * rng.choice((1, 100))
        elif kind == 3:
            out[at : at + size] = rng.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * size
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


def positive(value: float, what: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise Wrong(f"{what} = {value!r}")


def command(*words: str) -> None:
    """A command of the program, in this process; its error is raised."""
    from typer.testing import CliRunner

    from tstar.lab.cli.app import _load_commands, app

    _load_commands()
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception


def formula(rng: random.Random, folder: Path) -> None:
    import tstar

    m, k, csg = number(rng, 2, 1e5), number(rng, 2, 1e4), number(rng, 1e-3, 1e4)
    value = tstar.temperature(m, k, csg, variant="csgcn")
    positive(value, "T")
    own = 0.3192 * math.sqrt(m) + 20.74 + 3.746 * math.log(csg) - 7.38 * math.log(k)
    if 1 < own < 512 and not math.isclose(own, value, rel_tol=1e-9):
        raise Wrong(f"{value} for {own}")


def advice(rng: random.Random, folder: Path) -> None:
    import torch

    import tstar

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    drawn = {
        "optimizer": rng.choice(["sgd", "adam", "adamw", "SGD", "lion"]),
        "lr": number(rng, 1e-5, 10),
        "steps": number(rng, 1, 1e5),
        "momentum": rng.choice([0.0, 0.9, 1.0, math.nan]),
        "batch_size": number(rng, 1, 1e4),
    }
    given = tstar.recommend(model, **{k: v for k, v in drawn.items() if rng.random() < 0.7})
    positive(given.temperature, "T")
    json.dumps(given.to_dict(), allow_nan=False)


def coefficients(rng: random.Random, folder: Path) -> None:
    import tstar

    good = dict(format=1, name="x", alpha=0.4, beta=6.5, gamma=0, delta=-2, minimum=1, maximum=512)
    path = folder / "set.json"
    path.write_text(mutated_text(json.dumps(good, indent=1), rng), encoding="utf-8")
    positive(tstar.temperature(64, 10, 3.0, coefficients=str(path)), "T")


def study(rng: random.Random, folder: Path) -> None:
    from tstar.lab.sweep.study import load_study

    path = folder / "study.toml"
    path.write_text(mutated_text(STUDY, rng), encoding="utf-8")
    for spec in load_study(path).specs:
        if spec.temperature is not None:
            positive(spec.temperature, "T")


def store(rng: random.Random, folder: Path) -> None:
    from tstar.lab.sweep.transfer import load_runs

    good, path = folder / "good.db", folder / "runs.db"
    if not good.exists():  # three runs of a tiny study, really done
        (folder / "good.toml").write_text(STUDY, encoding="utf-8")
        command("sweep", str(folder / "good.toml"), "--store", str(good), "--workers", "1")
    path.write_bytes(good.read_bytes())
    if rng.random() < 0.5:
        path.write_bytes(mutated(good.read_bytes(), rng))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            names = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
            cell = rng.choice([b"\x00", "x", -1, 1e308, 2**60, "nan", "{", "[/x]", "\u202e", None])
            try:
                db.execute(f'UPDATE OR IGNORE runs SET "{rng.choice(names)}" = ?', (cell,))
            except sqlite3.Error:
                return
    load_runs(path)


def npz(rng: random.Random, folder: Path) -> None:
    draw = np.random.default_rng(rng.randrange(2**32))
    shape = rng.choice([(4, 4, 3), (4, 4), (5,), (0,)])
    kind = rng.choice(["uint8", "float32", "float64", "int64", "complex64", "U2"])
    arrays: dict[str, Any] = {}
    for part, n in (("train", rng.randint(0, 20)), ("test", rng.randint(0, 8))):
        arrays[f"x_{part}"] = (draw.random((n, *shape)) * 255).astype(kind)
        y = draw.integers(0, 3, n)
        arrays[f"y_{part}"] = rng.choice([y, y, y.astype(float), y * 10**7, -y])
    if rng.random() < 0.3:
        arrays.pop(rng.choice(list(arrays)))
    file = BytesIO()
    np.savez_compressed(file, **arrays)
    data = file.getvalue()
    (folder / "data.npz").write_bytes(mutated(data, rng) if rng.random() < 0.6 else data)
    _loaded(folder / "data.npz")


def table(rng: random.Random, folder: Path) -> None:
    data = mutated_text(TEXTS, rng).encode("utf-8", "replace")
    (folder / "texts.csv").write_bytes(mutated(data, rng) if rng.random() < 0.3 else data)
    _loaded(folder / "texts.csv")


def images(rng: random.Random, folder: Path) -> None:
    from PIL import Image

    root = folder / "images"
    shutil.rmtree(root, ignore_errors=True)
    for label in range(rng.choice((0, 1, 2, 3, 3, 3))):
        target = root / rng.choice([f"class {label}", f"[red]{label}", ".hidden"])
        target.mkdir(parents=True, exist_ok=True)
        for i in range(rng.choice((0, 1, 7, 7, 7))):
            file, size = BytesIO(), (rng.randint(1, 9), rng.randint(1, 9))
            Image.new(rng.choice(["L", "RGB", "P", "1"]), size, rng.randrange(2)).save(file, "PNG")
            data = mutated(file.getvalue(), rng) if rng.random() < 0.05 else file.getvalue()
            (target / f"{i}.{rng.choice(['png', 'png', 'txt'])}").write_bytes(data)
    command("csg", str(root))


def _loaded(path: Path) -> None:
    """The data of a file; their labels must be classes."""
    from tstar.lab.data import load

    data = load(str(path))
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        inside = not len(y) or 0 <= int(y.min()) <= int(y.max()) < data.num_classes
        if len(x) != len(y) or not inside:
            raise Wrong("labels outside the classes")


def checkpoint(rng: random.Random, folder: Path) -> None:
    import torch
    from safetensors.torch import save

    import tstar

    torch.manual_seed(0)
    model = tstar.temper(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), 2.0)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    name, kind = rng.choice(list(state)), rng.randrange(4)
    if kind == 0:
        state.pop(name)
    elif kind == 1:
        state[name] = state[name].double() * rng.choice([math.nan, math.inf, -1, 0])
    elif kind == 2:
        state[name] = state[name].reshape(-1)[:1]
    file, path = BytesIO(), folder / rng.choice(["model.pt", "model.safetensors"])
    torch.save(state, file)
    data = file.getvalue() if path.suffix == ".pt" else save(state)
    path.write_bytes(mutated(data, rng) if kind == 3 else data)
    out = folder / f"folded{path.suffix}"
    command("fold", str(path), "-o", str(out))
    out.unlink(missing_ok=True)


Door = Callable[[random.Random, Path], None]
DOORS: dict[str, tuple[Door, float]] = {  # with the share of the inputs
    **{"formula": (formula, 0.4), "advice": (advice, 0.1), "coefficients": (coefficients, 0.15)},
    **{"study": (study, 0.15), "npz": (npz, 0.06), "table": (table, 0.06)},
    **{"images": (images, 0.02), "checkpoint": (checkpoint, 0.04), "store": (store, 0.02)},
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


def run(inputs: list[tuple[str, int]], minutes: float) -> dict[str, Any]:
    """Every input until the minutes are over: how many of each door, the slowest, and what was found."""
    counts: dict[str, Counter[str]] = {door: Counter() for door in DOORS}
    findings, slowest, begun = [], 0.0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for door, which in inputs:
            if time.monotonic() - begun > 60 * minutes:
                break
            started = time.process_time()
            outcome = attempt(door, which, Path(folder))
            slowest = max(slowest, time.process_time() - started)
            fine = outcome in ("answered", "refused")
            counts[door][outcome if fine else "found"] += 1
            if not fine:
                findings.append({"door": door, "number": which, "what": outcome})
    done = {door: dict(sorted(count.items())) for door, count in counts.items() if count}
    total = sum(n for count in done.values() for n in count.values())
    return {"inputs": total, "slowest": round(slowest, 2), "counts": done, "findings": findings}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
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
    inputs = [
        (door, options.seed * 10**9 + i)
        for door, (_, share) in DOORS.items()
        for i in range(math.ceil(options.inputs * share))
        if options.door in (None, door)
    ]
    random.Random(options.seed).shuffle(inputs)
    report = {"command": " ".join(["python", *sys.argv]), **run(inputs, options.minutes)}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return int(bool(report["findings"]))


if __name__ == "__main__":
    sys.exit(main())
