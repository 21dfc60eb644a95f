"""Wounded files, strange numbers, wrong kinds, and sound inputs, at every door of the package.

An input may be answered, or refused with a ``TstarError``. A finding is anything else: another
exception, an answer that cannot be right, or more than 10 s of processor time. More than half of
the inputs are sound but unusual, so that what lies behind the checks is reached. Inputs are drawn
by seed: (door, number) is one input on any machine. ``--at-least M`` repeats the inputs until M
minutes are over: a soak, whose memory, threads and open files are noted every five minutes.

    python benchmarks/fuzz.py --inputs 50000 --output results/reliability/fuzz.json
    python benchmarks/fuzz.py --door npz --number 17         one input again, with its traceback
"""

from __future__ import annotations

import argparse
import itertools
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
samples = 40
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
    """Mostly a sensible number, sometimes an odd one; whole if ``low`` is."""
    if rng.random() < 0.06:
        return rng.choice(ODD)
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return round(value) if isinstance(low, int) and rng.random() < 0.95 else value


def wounded(rng: random.Random) -> bool:
    """Whether an input is wounded, or sound as it was drawn."""
    return rng.random() < 0.4


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled, overwritten: a few wounds."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(max(1, len(out))), rng.choice((1, 1, 2, 4, 8, 64))
        wounds = (b"", b"", bytes(out[at : at + size]) * 100, rng.randbytes(size), b"\x00" * size)
        out[at : at + size] = rng.choice(wounds)
    return bytes(out)


def mutated_text(text: str, rng: random.Random) -> str:
    """Words replaced, lines doubled, dropped and strange."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        words = lines[at].split(" ")
        words[rng.randrange(len(words))] = rng.choice(TOKENS)
        new = [" ".join(words)]
        lines[at : at + 1] = rng.choice((new, new, [], [lines[at]] * 2, [rng.choice(TOKENS)])) or [
            ""
        ]
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
    own = 0.3192 * math.sqrt(m) + 20.74 + 3.746 * math.log(csg) - 7.38 * math.log(k)
    if not math.isclose(min(max(own, 1), 512), value, rel_tol=1e-9):
        raise Wrong(f"{value} for {own}")


def advice(rng: random.Random, folder: Path) -> None:
    import torch

    import tstar

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    how = {"lr": number(rng, 1e-5, 10.0), "momentum": number(rng, 0.1, 0.99)}
    how |= {"batch_size": number(rng, 1, 1e4), "steps": number(rng, 1, 1e5)}
    how = {name: value for name, value in how.items() if rng.random() < 0.7}
    how["optimizer"] = rng.choice(["sgd", "sgd", "adam", "adamw", "SGD", "lion"])
    given = tstar.recommend(model, **how)
    positive(given.temperature, "T")
    json.dumps(given.to_dict(), allow_nan=False), str(given), given.details()


def kinds(rng: random.Random, folder: Path) -> None:
    """A door is given what is of another kind, or a name."""
    import tstar
    from tstar.lab import methods, models
    from tstar.lab.sweep import load_runs, load_study, run_study

    doors: tuple[Callable[[Any], Any], ...] = (
        *(tstar.temperature, tstar.temper, tstar.fold, tstar.find_head, tstar.recommend, tstar.csg),
        *(tstar.Coefficients.load, load_study, load_runs, methods.get),
        lambda value: models.build(value, 10),
        lambda value: run_study(value, folder / "none.db"),
        lambda value: run_study(STUDY, value),
    )
    values = (*ODD, *TOKENS, b"x", [3], {}, (), object(), "x" * 5000, Path(), "kd:tau=2", "mlp")
    rng.choice(doors)(rng.choice(values))


def csg(rng: random.Random, folder: Path) -> None:
    import tstar

    draw = np.random.default_rng(rng.randrange(2**32))
    n, classes = rng.randint(8, 60), rng.randint(2, 4)
    x: Any = draw.normal(size=(n, *rng.choice([(3,), (8,), (4, 4), (4, 4, 3)])))
    x = (x * 10.0 ** rng.randint(-9, 9)).astype(rng.choice(["float32", "float64", "int64"]))
    y: Any = draw.integers(0, classes, n)
    if wounded(rng):
        x = x.astype(rng.choice(["float16", "complex64", "U3", "O", "longdouble", "bool", ">f4"]))
        x.reshape(-1)[rng.randrange(x.size)] = rng.choice([math.nan, math.inf, 1e30, 0])
        y = rng.choice([y, y[:-1], y + 0.5, [*y[1:], None], list(map(str, y)), y * 0])
    pairs = rng.random() < 0.3
    found = tstar.csg(list(zip(x, y, strict=False))) if pairs else tstar.csg(x, y)
    if not 0 <= float(found) <= classes:
        raise Wrong(f"csg = {float(found)}")
    json.dumps(found.to_dict(), allow_nan=False), str(found)


def surgery(rng: random.Random, folder: Path) -> None:
    import torch
    from torch import nn

    import tstar

    torch.manual_seed(rng.randrange(2**32))
    m, k = rng.randint(1, 9), rng.randint(1 + (rng.random() < 0.95), 5)
    head = nn.Linear(m, k, bias=rng.random() < 0.7)
    model: nn.Module = nn.Sequential(nn.Linear(4, m), nn.ReLU(), head)
    batch, kind = torch.randn(8, 4), rng.randrange(12)
    if kind == 0:
        head.register_forward_hook(lambda module, inputs, logits: logits.exp())
    elif kind == 1:
        head.weight.requires_grad_(False)
    elif kind == 2:
        model, batch = model.to(torch.bfloat16), batch.to(torch.bfloat16)
    elif kind == 3:
        model.append(nn.Softmax(-1))
    model = tstar.temper(model, number(rng, 1e-3, 1e4), norm=rng.choice(["batch", "batch", None]))
    for _ in range(rng.randint(1, 3)):
        model.train()(batch)
    logits = model.eval()(batch)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        folded = tstar.fold(model, allow_bias=rng.random() < 0.9)(batch)
    said = any("after folding" in str(warning.message) for warning in told)  # a hook changes them
    if not said and not torch.allclose(
        logits, folded, rtol=0.03, atol=0.03 * float(logits.detach().abs().max())
    ):
        raise Wrong("folded logits differ")


def coefficients(rng: random.Random, folder: Path) -> None:
    import tstar

    names = ("alpha", "beta", "gamma", "delta")
    good: dict[str, Any] = {"format": 1, "name": rng.choice(TOKENS), "minimum": 1}
    good |= {"maximum": 10 ** rng.randint(0, 9)}
    good |= {name: rng.choice((0, -2, rng.uniform(-9, 9))) for name in names}
    text, path = json.dumps(good, indent=1), folder / "set.json"
    path.write_text(mutated_text(text, rng) if wounded(rng) else text, encoding="utf-8")
    positive(tstar.temperature(64, 10, 3.0, coefficients=str(path)), "T")


def study(rng: random.Random, folder: Path) -> None:
    from tstar.lab.sweep import load_study

    some = [10 ** rng.uniform(-3, 3) for _ in range(rng.randint(1, 5))]
    training = f"epochs = {rng.randint(1, 99)}\nlr = {10 ** rng.uniform(-9, 3)}"
    text = STUDY.replace("[1, 4, 8]", str(some)).replace("epochs = 1", training)
    path = folder / "study.toml"
    path.write_text(mutated_text(text, rng) if wounded(rng) else text, encoding="utf-8")
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
    draw, hurt = np.random.default_rng(rng.randrange(2**32)), wounded(rng)
    shape = rng.choice([(4, 4, 3), (4, 4), (5,), (0,)][: 3 + hurt])
    kind = rng.choice(["uint8", "float32", "float64", "int64", "complex64", "U2"][: 3 + 3 * hurt])
    arrays: dict[str, Any] = {}
    for part, n in (("train", rng.randint(0 if hurt else 9, 20)), ("test", rng.randint(3, 8))):
        arrays[f"x_{part}"] = (draw.random((n, *shape)) * 255).astype(kind)
        y = np.arange(n) % 3
        arrays[f"y_{part}"] = rng.choice([y, y.astype(float), y * 10**7, -y][: 2 + 2 * hurt])
    if hurt and rng.random() < 0.3:
        arrays.pop(rng.choice(list(arrays)))
    file = BytesIO()
    np.savez_compressed(file, **arrays)
    data = file.getvalue()
    (folder / "data.npz").write_bytes(mutated(data, rng) if hurt and rng.random() < 0.7 else data)
    _loaded(folder / "data.npz")


def table(rng: random.Random, folder: Path) -> None:
    data = (mutated_text(TEXTS, rng) if wounded(rng) else TEXTS).encode("utf-8", "replace")
    (folder / "texts.csv").write_bytes(mutated(data, rng) if rng.random() < 0.3 else data)
    _loaded(folder / "texts.csv")


def images(rng: random.Random, folder: Path) -> None:
    from PIL import Image

    root = folder / "images"
    shutil.rmtree(root, ignore_errors=True)
    hurt = wounded(rng)
    for label in range(rng.choice((0, 1, 2, 3)) if hurt else 3):
        target = root / rng.choice([f"class {label}", f"[red]{label}", ".hidden"][: 2 + hurt])
        target.mkdir(parents=True, exist_ok=True)
        for i in range(rng.choice((0, 1, 7)) if hurt else 7):
            file, size = BytesIO(), (rng.randint(1, 9), rng.randint(1, 9))
            Image.new(rng.choice(["L", "RGB", "P", "1"]), size, rng.randrange(2)).save(file, "PNG")
            data = file.getvalue()
            data = mutated(data, rng) if hurt and rng.random() < 0.1 else data
            (target / f"{i}.{rng.choice(['png', 'PNG', 'txt'][: 2 + hurt])}").write_bytes(data)
    _loaded(root, 8)


def _loaded(path: Path, size: int | None = None) -> None:
    """The data of a file; their labels must be classes."""
    from tstar.lab.data import load

    data = load(str(path), size=size)
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        inside = not len(y) or 0 <= int(y.min()) <= int(y.max()) < data.num_classes
        if len(x) != len(y) or not inside:
            raise Wrong("labels outside the classes")


def checkpoint(rng: random.Random, folder: Path) -> None:
    import torch
    from safetensors.torch import save

    import tstar

    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    model = tstar.temper(plain, 10 ** rng.uniform(-3, 3), norm=rng.choice(["batch", None]))
    state = {key: value.clone() for key, value in model.state_dict().items()}
    name, kind = rng.choice(list(state)), rng.randrange(7)
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
    **{"formula": (formula, 0.2), "advice": (advice, 0.1), "kinds": (kinds, 0.1)},
    **{"coefficients": (coefficients, 0.12), "study": (study, 0.12), "npz": (npz, 0.08)},
    **{"table": (table, 0.08), "csg": (csg, 0.08), "surgery": (surgery, 0.06)},
    **{"checkpoint": (checkpoint, 0.03), "images": (images, 0.015), "store": (store, 0.015)},
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


def held() -> dict[str, int]:
    """What the process holds at the moment: memory in MB, open files, threads."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    now = {"mb": int(status["VmRSS"].split()[0]) >> 10, "threads": int(status["Threads"])}
    return {**now, "files": len(list(Path("/proc/self/fd").iterdir()))}


def run(inputs: list[tuple[str, int]], minutes: float, at_least: float = 0) -> dict[str, Any]:
    """Every input, at most for so many minutes: counts, the slowest, findings, and the soak."""
    counts: dict[str, Counter[str]] = {door: Counter() for door in DOORS}
    findings, slowest, begun, soak, done = list[Any](), 0.0, time.monotonic(), list[Any](), 0
    with tempfile.TemporaryDirectory() as folder:
        for door, which in itertools.cycle(inputs):
            passed = (time.monotonic() - begun) / 60
            if passed > minutes or (done >= len(inputs) and passed >= at_least):
                break
            if at_least and passed >= 5 * len(soak):
                soak.append({"minute": round(passed), "inputs": done, **held()})
            started = time.process_time()
            outcome = attempt(door, which, Path(folder))
            took = time.process_time() - started
            # Its first input also imports what a door needs.
            fine = outcome in ("answered", "refused") and (took < 10 or not counts[door])
            slowest, done = max(slowest, took if counts[door] else 0), done + 1
            counts[door][outcome if fine else "found"] += 1
            if not fine:
                findings.append({"door": door, "number": which, "what": outcome, "took": took})
    answered = sum(count["answered"] for count in counts.values())
    report = {"inputs": done, "minutes": round((time.monotonic() - begun) / 60, 1)}
    report |= {"answered": round(answered / max(1, done), 3), "slowest": round(slowest, 2)}
    return {**report, "counts": counts, "findings": findings} | ({"soak": soak} if soak else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--at-least", type=float, default=0)
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
    report = {
        "command": " ".join(["python", *sys.argv]),
        **run(inputs, options.minutes, options.at_least),
    }
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return int(bool(report["findings"]))


if __name__ == "__main__":
    sys.exit(main())
