"""Does a sweep survive being killed at any moment?

A real ``tstar sweep`` (one worker or two, with checkpoints or without) runs in a process group of
its own. Most are forked, with their workers, from this process, which has torch imported; one in
twenty (``cold``) is a command as users start it. Most kills wait until the sweep owns its store or
has a new row, and so fall into the plan, into training and into commits, not into the import of
torch. SIGKILL goes to the owner of the store alone, whose workers must end by themselves; to one
worker, which the sweep must survive; or to the whole group. Before that, there may be a second
sweep of the store: both start at once (``two``) and one of them gets it, or the owner is stopped
(SIGSTOP) and the second is refused all the same.

After each kill, with SQLite alone:

- the file is sound (``PRAGMA integrity_check``);
- no finished run is lost or changed, and each equals the same run of an undisturbed sweep, to the
  last bit;
- nothing of the group is left.

Then the same command goes on. When the study is done, the store must hold each of its runs once,
and nothing but the store, its owner's file and the log may lie beside it. Then a new store begins.

    python benchmarks/kills.py --kills 200 --minutes 60 --output results/reliability/kills.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

STUDY = """name = "kills"
csg = false
[training]
epochs = 6
batch_size = 32
[[grid]]
dataset = "tiny"
model = "resnet10"
num_features = 8
norm = "batch"
temperature = [1, 2, 4, 8]
seeds = 10
"""
# What differs between two sound sweeps of one study: times, places and how often one began.
_UNLIKE = {"attempts", "seconds", "images_per_second", "host", "started", "finished", "commit"}
_FORK = multiprocessing.get_context("fork")
Runs = dict[str, dict[str, Any]]


class Broken(Exception):
    """What must not happen did."""


def start(study: Path, store: Path, *options: str, cold: bool = False) -> BaseProcess:
    """A sweep in a group of its own."""
    words = ["sweep", str(study), "--store", str(store), "--data-root", str(study.parent), *options]
    process = _FORK.Process(target=_sweep, args=(words, store.with_suffix(".log"), cold))
    process.start()
    with contextlib.suppress(OSError):  # it may have done so itself
        os.setpgid(process.pid, process.pid)  # type: ignore[arg-type]
    return process


def _sweep(words: list[str], log: Path, cold: bool) -> None:
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1), os.dup2(file, 2)
    if cold:
        os.execv(sys.executable, [sys.executable, "-m", "tstar", *words])
    from tstar.__main__ import main

    multiprocessing.get_context = lambda method=None: _FORK  # type: ignore[assignment]
    sys.argv = ["tstar", *words]
    main()


def kill(process: BaseProcess, victim: str = "group") -> None:
    """The owner or the whole group; and see that nothing of the group is left."""
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        (os.kill if victim == "owner" else os.killpg)(process.pid, signal.SIGKILL)
    process.join()
    if not until(lambda: not _alive(process.pid), 60):  # a worker notices that its parent is gone
        os.killpg(process.pid, signal.SIGKILL)
        raise Broken(f"the group {process.pid} outlived its kill ({victim})")


def _alive(group: int | None) -> bool:
    try:
        os.killpg(group or 0, 0)
    except ProcessLookupError:
        return False
    return True


def until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def worker_of(process: BaseProcess) -> int | None:
    """One of the sweep's workers, if there is one yet."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8")
        for child in children.split():
            if b"tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def finished(store: Path) -> Runs:
    """The finished runs as SQLite has them, by key."""
    if not store.exists() or not store.stat().st_size:
        return {}
    with contextlib.closing(sqlite3.connect(store, timeout=60)) as db:
        db.row_factory = sqlite3.Row
        sound = db.execute("PRAGMA integrity_check").fetchone()[0]
        if sound != "ok":
            raise Broken(f"integrity_check: {sound}")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
            return {}
        rows = [dict(row) for row in db.execute("SELECT * FROM runs WHERE status = 'done'")]
    runs = {row["key"]: {k: v for k, v in row.items() if k not in _UNLIKE} for row in rows}
    if len(runs) != len(rows):
        raise Broken("a run is there twice")
    return runs


def check(now: Runs, before: Runs, reference: Runs) -> None:
    if lost := before.keys() - now.keys():
        raise Broken(f"lost: {sorted(lost)}")
    for key, row in now.items():
        if row != reference[key]:
            raise Broken(f"{key}: {set(row.items()) ^ set(reference[key].items())}")


def owner_of(store: Path) -> int | None:
    """The process that is written down as the owner."""
    with contextlib.suppress(sqlite3.Error):
        url = f"file:{store}.owner?mode=ro"
        with contextlib.closing(sqlite3.connect(url, uri=True)) as db:
            return next((int(row[0]) for row in db.execute("SELECT pid FROM owner")), None)
    return None


def write_data(folder: Path) -> None:
    """Small images of three classes: reading them takes no other library."""
    random_ = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = random_.integers(0, 256, (90, 8, 8, 1), dtype=np.uint8)
    x[:, :, :, 0] //= (1 + y)[:, None, None].astype(np.uint8)
    np.savez(folder / "tiny.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])


class Store:
    """A study from nothing to its end, in spite of every kill."""

    def __init__(self, study: Path, path: Path, reference: Runs, rng: random.Random) -> None:
        self.study, self.path, self.reference, self.rng = study, path, reference, rng
        self.seen: Runs = {}
        self.counts: Counter[str] = Counter()
        self.options = rng.choice(((), ("--checkpoint", "0.0001")))

    def start(self, cold: bool = False) -> BaseProcess:
        self.counts["starts as a command" if cold else "starts by fork"] += 1
        workers = ("--workers", self.rng.choice("122"))
        return start(self.study, self.path, *workers, *self.options, cold=cold)

    def moment(self, sweep: BaseProcess) -> None:
        """Until a random moment: after the start, after the store is owned, or after a new row."""
        kind = self.rng.choice((0, 1, 1, 2, 2, 2))
        begun = (
            lambda: True,
            lambda: owner_of(self.path) == sweep.pid,
            lambda: finished(self.path).keys() != self.seen.keys(),
        )[kind]
        until(lambda: begun() or not sweep.is_alive(), 120)
        until(lambda: not sweep.is_alive(), self.rng.uniform(0, (8, 4, 1)[kind]))

    def refuse_second(self, first: BaseProcess) -> None:
        """While the owner is stopped, a second sweep is refused all the same, and says why."""
        until(lambda: owner_of(self.path) == first.pid or not first.is_alive(), 120)
        self.moment(first)
        if not first.is_alive():
            return
        os.kill(first.pid or 0, signal.SIGSTOP)
        self.counts["owners stopped"] += 1
        log = self.path.with_suffix(".log")
        at = log.stat().st_size
        second = self.start()
        second.join()
        said = " ".join(log.read_bytes()[at:].decode().split())
        owner = f"owned by process {first.pid} on {socket.gethostname()}"
        if second.exitcode == 1 and owner in said:
            self.counts["second sweeps refused"] += 1
        elif f"{len(self.reference)} before" not in said:  # else all was finished: nothing to own
            raise Broken(f"the second sweep ended with {second.exitcode}: {said}")
        os.kill(first.pid or 0, signal.SIGCONT)  # and it may go on

    def attack(self) -> None:
        """Start, disturb, kill, and check."""
        scene = self.rng.choice(("", "", "", "", "two", "stopped", "stopped"))
        victim = self.rng.choice(("owner", "worker", "group"))
        sweeps = [self.start(cold=self.rng.random() < 0.05)]
        try:
            if scene == "two":
                sweeps.append(self.start())
                self.counts["two at once"] += 1
            if scene == "stopped":
                self.refuse_second(sweeps[0])
            else:
                self.moment(sweeps[0])
            if victim == "worker" and (worker := worker_of(sweeps[0])) is not None:
                os.kill(worker, signal.SIGKILL)
                self.counts["workers killed"] += 1
                self.moment(sweeps[0])  # the sweep goes on without it
            for sweep in sweeps:
                if sweep.is_alive():
                    self.counts["owners killed" if victim == "owner" else "groups killed"] += 1
                elif sweep.exitcode not in (0, 1 if scene == "two" else 0):
                    raise Broken(self.path.with_suffix(".log").read_text("utf-8")[-2000:])
        finally:
            for sweep in sweeps:
                kill(sweep, victim)
        now = finished(self.path)
        check(now, self.seen, self.reference)
        self.seen = now

    def run(self, end: float) -> Counter[str]:
        while len(self.seen) < len(self.reference) and time.monotonic() < end:
            self.attack()
        if time.monotonic() < end:  # once more, undisturbed: there is nothing to do but to clear up
            if whole(self.study, self.path) != self.reference:
                raise Broken("the finished store does not hold the study's runs")
            files = {path.name for path in self.path.parent.rglob("*") if path.is_file()}
            if files != {"runs.db", "runs.db.owner", "runs.log"}:
                raise Broken(f"left over: {sorted(files)}")
            self.counts["studies finished"] += 1
        self.counts["rows checked"] += len(self.seen)
        return self.counts


def whole(study: Path, store: Path, cold: bool = False) -> Runs:
    """Every run of the study, of a sweep that nothing disturbs."""
    sweep = start(study, store, "--workers", "1", cold=cold)
    sweep.join()
    if sweep.exitcode:
        raise Broken(store.with_suffix(".log").read_text("utf-8"))
    return finished(store)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    from tstar.lab.cli import app
    from tstar.lab.sweep.execute import Job, execute
    from tstar.lab.sweep.plan import make_plan
    from tstar.lab.sweep.study import load_study

    app._load_commands()
    rng, total, broken, stores = random.Random(options.seed), Counter[str](), "", 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = folder / "study.toml"
        study.write_text(STUDY, encoding="utf-8")
        write_data(folder)
        reference = whole(study, folder / "reference.db", cold=True)
        plan = make_plan(load_study(study), None, data_root=name)
        execute(Job(plan.specs[0], name))  # what is imported on the way, forked sweeps then have
        end = begun + 60 * options.minutes
        try:
            while total["killed"] < options.kills and time.monotonic() < end:
                path = folder / str(stores) / "runs.db"
                path.parent.mkdir()
                total += Store(study, path, reference, rng).run(end)
                total["killed"] = sum(n for what, n in total.items() if what.endswith("s killed"))
                stores += 1
                print(stores, dict(total), flush=True)  # how far a campaign came that is ended
        except Broken as error:
            broken = str(error)
    report = {
        "command": " ".join(["python", *sys.argv]),
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "runs_of_the_study": len(reference),
        "stores": stores,
        "counts": dict(sorted(total.items())),
        "broken": broken,
    }
    print(json.dumps(report, indent=1))
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
