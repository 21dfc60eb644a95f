"""Does a sweep survive being killed at any moment?

A real ``tstar sweep`` (one worker or two) is started in a process group of its own. At a random moment
(while Python starts, while data are read, in training, in a commit) SIGKILL goes to the owner of the
store alone, whose workers must end by themselves; to one worker, which the sweep must survive; or to the
whole group. After each kill, with SQLite alone:

- the file is sound (``PRAGMA integrity_check``);
- no finished run is lost or changed, and each equals the same run of an undisturbed sweep, to the last bit;
- nothing of the group is left, unless a worker alone was killed.

Then the same command goes on. When the study is done, the store must hold each of its runs once. Then a
new store begins.

    python benchmarks/kills.py --kills 200 --minutes 15 --output results/reliability/kills.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

STUDY = """name = "kills"
csg = false
[training]
epochs = 1
batch_size = 32
[[grid]]
dataset = "tiny"
model = "resnet10"
num_features = 8
norm = "batch"
temperature = [1, 2, 4, 8]
seeds = 2
"""
OUTCOME = (
    *("status", "temperature", "val_accuracy", "test_accuracy"),
    *("train_loss", "val_loss", "nll", "ece"),
)
Runs = dict[str, tuple[Any, ...]]


class Broken(Exception):
    """What must not happen did."""


Group = subprocess.Popen[bytes]


def start(study: Path, store: Path, workers: int) -> Group:
    command = ["sweep", str(study), "--store", str(store), "--data-root", str(study.parent)]
    with store.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tstar", *command, "--workers", str(workers)],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def kill(process: Group, victim: str = "group") -> None:
    """The owner or the whole group; and see that nothing of the group is left."""
    with contextlib.suppress(ProcessLookupError):
        (os.kill if victim == "owner" else os.killpg)(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(600):  # a worker notices that its parent is gone
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise Broken(f"the group {process.pid} outlived its kill ({victim})")


def worker_of(process: Group) -> int | None:
    """One of the sweep's workers, if there is one yet."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    found = children.read_text(encoding="utf-8").split() if children.exists() else []
    spawned = [p for p in found if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]
    return int(spawned[0]) if spawned else None


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


def write_data(folder: Path) -> None:
    """Small images of three classes: reading them takes no other library."""
    random_ = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = random_.integers(0, 256, (90, 8, 8, 1), dtype=np.uint8)
    x[:, :, :, 0] //= (1 + y)[:, None, None].astype(np.uint8)
    np.savez(folder / "tiny.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])


def undisturbed(study: Path, folder: Path) -> tuple[Runs, float]:
    """Every run of the study, and the seconds that it takes."""
    begun = time.monotonic()
    if start(study, folder / "reference.db", 1).wait():
        raise Broken((folder / "reference.log").read_text(encoding="utf-8"))
    return finished(folder / "reference.db"), time.monotonic() - begun


def waited(group: Group, store: Path, seen: Runs, whole: float, rng: random.Random) -> None:
    """Until a random moment: of the whole sweep, of its start, or of the runs after its first new one.

    Starting takes most of a sweep as small as this one; without the third kind few moments would lie in
    training and in commits.
    """
    kind = rng.randrange(3)
    if kind == 2:
        while group.poll() is None and finished(store).keys() == seen.keys():
            time.sleep(0.1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        group.wait(rng.uniform(0, whole * (1.0, 0.3, 0.1)[kind]))


def one_store(
    study: Path, store: Path, reference: Runs, whole: float, rng: random.Random, end: float
) -> Counter[str]:
    """A study from nothing to its end, in spite of every kill."""
    seen: Runs = {}
    counts: Counter[str] = Counter()
    victim = "group"
    while len(seen) < len(reference) and time.monotonic() < end:
        group = start(study, store, rng.choice((1, 2)))
        counts["starts"] += 1
        try:
            waited(group, store, seen, whole, rng)
            victim = rng.choice(("owner", "worker", "group"))
            worker = worker_of(group) if victim == "worker" and group.poll() is None else None
            if worker is not None:
                os.kill(worker, signal.SIGKILL)
                counts["workers killed"] += 1
                waited(group, store, finished(store), whole, rng)  # the sweep goes on without it
            killed = group.poll() is None
            counts["killed"] += killed + (worker is not None)
            counts[f"{'owners' if victim == 'owner' else 'groups'} killed"] += killed
            if group.returncode:
                raise Broken(store.with_suffix(".log").read_text(encoding="utf-8")[-2000:])
        finally:
            kill(group, victim)
        now = finished(store)
        check(now, seen, reference)
        seen = now
    if time.monotonic() < end and seen != reference:
        raise Broken(f"{len(seen)} of {len(reference)} runs at the end")
    counts["studies finished"] += seen == reference
    counts["runs checked"] += len(seen)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rng, total, broken = random.Random(options.seed), Counter[str](), ""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = folder / "study.toml"
        study.write_text(STUDY, encoding="utf-8")
        write_data(folder)
        reference, whole = undisturbed(study, folder)
        end = time.monotonic() + 60 * options.minutes
        stores = 0
        try:
            while total["killed"] < options.kills and time.monotonic() < end:
                store = folder / f"{stores}.db"
                total += one_store(study, store, reference, whole, rng, end)
                stores += 1
                for old in folder.glob(f"{stores - 1}.*"):
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
                print(
                    stores, dict(total), flush=True
                )  # a campaign that is ended has said how far it came
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
