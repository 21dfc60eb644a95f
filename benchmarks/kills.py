"""Does a sweep survive being killed at any moment?

A real ``tstar sweep`` (one worker or two) is started in a process group of its own, and the whole group gets SIGKILL at a random
moment: while Python starts, while data are read, in training, in a commit. After each kill, with SQLite alone:

- the file is sound (``PRAGMA integrity_check``);
- no finished run is lost or changed, and each equals the same run of an undisturbed sweep, to the last bit;
- nothing of the group is left.

Then the same command goes on. When the study is done, the store must hold each of its runs once. Then a new store begins.

    python benchmarks/kills.py --kills 200 --minutes 15 --output results/reliability/kills.json

The soak: ``--sweeps 2`` (several commands on one store at once; ``--ray``: one of them on Ray), ``--stops`` (a group is stopped for longer
than a claim lives, then goes on), ``--full`` (root only: the store is on a small disk that is filled twice).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STUDY = """name = "kills"
[training]
epochs = 1
batch_size = 32
[[grid]]
dataset = "digits"
train_samples = 100
model = "resnet10"
num_features = 8
norm = "batch"
temperature = [1, 2, 4, 8]
seeds = 6
"""
OUTCOME = (
    "status",
    "temperature",
    "val_accuracy",
    "test_accuracy",
    "train_loss",
    "val_loss",
    "nll",
    "ece",
)
STOPPED = 130.0  # seconds: longer than a claim lives without a heartbeat

Runs = dict[str, tuple[Any, ...]]


class Broken(Exception):
    """What must not happen did."""


def start(study: Path, store: Path, workers: int, ray: bool = False) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tstar", "sweep", str(study), "--store", str(store)]
    command += ["--workers", str(workers), *(["--engine", "ray"] if ray else [])]
    with store.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group, at once; and see that nothing of it is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise Broken(f"the group {process.pid} outlived its kill")


def finished(store: Path) -> Runs:
    """The finished runs as SQLite has them: key → outcome."""
    if not store.exists() or not store.stat().st_size:
        return {}
    with contextlib.closing(sqlite3.connect(store, timeout=60)) as db:
        sound = db.execute("PRAGMA integrity_check").fetchone()[0]
        if sound != "ok":
            raise Broken(f"integrity_check: {sound}")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return {}
        rows = db.execute(
            f"SELECT key, {', '.join(OUTCOME)} FROM runs WHERE status = 'done'"
        ).fetchall()
    if len({row[0] for row in rows}) != len(rows):
        raise Broken("a run is there twice")
    return {row[0]: row[1:] for row in rows}


def check(now: Runs, before: Runs, reference: Runs) -> None:
    if lost := before.keys() - now.keys():
        raise Broken(f"lost: {sorted(lost)}")
    for key, outcome in now.items():
        if outcome != reference[key]:
            raise Broken(f"{key}: {outcome} for {reference[key]}")


def undisturbed(study: Path, folder: Path) -> tuple[Runs, float]:
    """Every run of the study, and the seconds that it takes."""
    begun = time.monotonic()
    process = start(study, folder / "reference.db", 1)
    if process.wait():
        raise Broken((folder / "reference.log").read_text(encoding="utf-8"))
    return finished(folder / "reference.db"), time.monotonic() - begun


@contextlib.contextmanager
def small_disk(folder: Path, wanted: bool) -> Iterator[Path]:
    """A disk of 4 MB, where one is wanted."""
    disk = folder / "disk"
    disk.mkdir()
    if wanted:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        if wanted:
            subprocess.run(["umount", str(disk)], check=True)


def disturb(group: subprocess.Popen[bytes], options: argparse.Namespace, rng: random.Random) -> str:
    """Kill the group, or stop it for longer than its claims live."""
    if options.stops and rng.random() < 0.15:
        os.killpg(group.pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group.pid, signal.SIGCONT)
        return "stopped"
    kill(group)
    return "killed"


def one_store(
    study: Path,
    store: Path,
    reference: Runs,
    whole: float,
    options: argparse.Namespace,
    rng: random.Random,
    end: float,
) -> Counter[str]:
    """A study from nothing to its end, in spite of everything."""
    seen: Runs = {}
    counts: Counter[str] = Counter()
    groups: list[subprocess.Popen[bytes]] = []
    fills = 2 if options.full else 0
    try:
        while len(seen) < len(reference) and time.monotonic() < end:
            while len(groups) < options.sweeps:
                ray = options.ray and not groups
                groups.append(start(study, store, rng.choice((1, 2)), ray))
                counts["starts"] += 1
            wait = rng.uniform(0, whole * (1.0 if rng.random() < 0.5 else 0.3))
            group = rng.choice(groups)
            with contextlib.suppress(subprocess.TimeoutExpired):
                group.wait(wait)
            if fills and rng.random() < 0.3:
                _fill(store.parent, rng.uniform(1, 10))
                fills -= 1
                counts["disk filled"] += 1
            if group.poll() is None:
                counts[disturb(group, options, rng)] += 1
            elif group.returncode:
                counts["ended with an error"] += 1
                if not options.full:
                    raise Broken(store.with_suffix(".log").read_text(encoding="utf-8")[-2000:])
            if group.poll() is not None:
                groups.remove(group)
            now = finished(store)
            check(now, seen, reference)
            seen = now
    finally:
        for group in groups:
            kill(group)
    if time.monotonic() < end and seen != reference:
        raise Broken(f"{len(seen)} of {len(reference)} runs at the end")
    counts["studies finished"] += seen == reference
    counts["runs checked"] += len(seen)
    return counts


def _fill(disk: Path, seconds: float) -> None:
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    time.sleep(seconds)
    ballast.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sweeps", type=int, default=1)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--stops", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rng, total, broken = random.Random(options.seed), Counter[str](), ""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name, small_disk(Path(name), options.full) as disk:
        folder = Path(name)
        study = folder / "study.toml"
        study.write_text(STUDY, encoding="utf-8")
        reference, whole = undisturbed(study, folder)
        end = time.monotonic() + 60 * options.minutes
        stores = 0
        try:
            while total["killed"] < options.kills and time.monotonic() < end:
                store = disk / f"{stores}.db"
                total += one_store(study, store, reference, whole, options, rng, end)
                stores += 1
                for old in disk.glob(f"{stores - 1}.*"):
                    old.unlink()
        except Broken as error:
            broken = str(error)
    report = {
        "command": " ".join(["python", *sys.argv]),
        "seed": options.seed,
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "runs_of_the_study": len(reference),
        "stores": stores,
        "counts": dict(sorted(total.items())),
        "broken": broken,
    }
    print(json.dumps(report, indent=1))
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
