"""Does a sweep survive being killed at any moment?

A real ``tstar sweep`` (one worker or two) is started in a process group of its own, and the whole group gets SIGKILL at a random
moment: while Python starts, while data are read, in training, in a commit. After each kill, with SQLite alone:

- the file is sound (``PRAGMA integrity_check``);
- no finished run is lost or changed, and each equals the same run of an undisturbed sweep, to the last bit;
- nothing of the group is left.

Then the same command goes on. When the study is done, the store must hold each of its runs once. Then a new store begins.

    python benchmarks/kills.py --kills 200 --minutes 15 --output results/reliability/kills.json

Nearly all of such a sweep's processor time is the import of torch. ``--warm`` imports it once: each command, and each worker, is forked
from a process that has it, so that the moments lie in the plan, in training and in commits, and a kill costs a tenth of a second.

The soak: ``--sweeps 2`` (several commands on one store at once; ``--ray``: one of them on Ray), ``--stops`` (a group is stopped for longer
than a claim lives, then goes on), ``--full`` (root only: the store is on a small disk that is filled twice).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

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


class Forked:
    """A command in a fork of this process, with what ``subprocess.Popen`` offers."""

    def __init__(self, command: list[str], log: int) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                os.setsid()
                os.dup2(log, 1)
                os.dup2(log, 2)
                status = _in_fork(command)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None:
            self._reap(0)
        end = time.monotonic() + (timeout or 0)
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("tstar sweep", timeout or 0)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def _reap(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def _in_fork(command: list[str]) -> int:
    """The command line's own ``main``, whose workers are forked as well."""
    from tstar.cli.app import main
    from tstar.sweep import engine

    fork = multiprocessing.get_context("fork")
    engine.multiprocessing.get_context = lambda method: fork  # type: ignore[attr-defined]
    sys.argv = ["tstar", *command]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


Group = Union["subprocess.Popen[bytes]", Forked]


def start(study: Path, store: Path, workers: int, ray: bool = False, warm: bool = False) -> Group:
    command = ["sweep", str(study), "--store", str(store), "--data-root", str(study.parent)]
    command += ["--workers", str(workers), *(["--engine", "ray"] if ray else [])]
    with store.with_suffix(".log").open("ab") as log:
        if warm:
            return Forked(command, log.fileno())
        return subprocess.Popen(
            [sys.executable, "-m", "tstar", *command],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


def kill(process: Group) -> None:
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


def write_data(folder: Path) -> None:
    """Small images of three classes: reading them takes no other library."""
    random_ = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = random_.integers(0, 256, (90, 8, 8, 1), dtype=np.uint8)
    x[:, :, :, 0] //= (1 + y)[:, None, None].astype(np.uint8)
    np.savez(folder / "tiny.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:])


def warm_up() -> None:
    """Import what a run needs; a thread of torch's would not survive a fork, so nothing is computed."""
    import torch._dynamo  # noqa: F401 (the optimizers import it)

    import tstar.cli.app
    import tstar.sweep.execute
    import tstar.training.running  # noqa: F401


def undisturbed(study: Path, folder: Path, warm: bool) -> tuple[Runs, float]:
    """Every run of the study, and the seconds that it takes."""
    begun = time.monotonic()
    process = start(study, folder / "reference.db", 1, warm=warm)
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


def disturb(group: Group, options: argparse.Namespace, rng: random.Random) -> str:
    """Kill the group, or stop it for longer than its claims live."""
    if options.stops and rng.random() < 0.15:
        os.killpg(group.pid, signal.SIGSTOP)
        time.sleep(STOPPED)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group.pid, signal.SIGCONT)
        return "stopped"
    kill(group)
    return "killed"


def waited(group: Group, store: Path, seen: Runs, whole: float, rng: random.Random) -> None:
    """Until a random moment: of the whole sweep, of its start, or of the runs after its first new one.

    Starting takes most of a sweep as small as this one; without the third kind few moments would lie in training and in commits.
    """
    kind = rng.randrange(3)
    if kind == 2:
        while group.poll() is None and finished(store).keys() == seen.keys():
            time.sleep(0.1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        group.wait(rng.uniform(0, whole * (1.0, 0.3, 0.1)[kind]))


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
    groups: list[Group] = []
    fills = 2 if options.full else 0
    try:
        while len(seen) < len(reference) and time.monotonic() < end:
            while len(groups) < options.sweeps:
                ray = options.ray and not groups
                groups.append(start(study, store, rng.choice((1, 2)), ray, options.warm))
                counts["starts"] += 1
            group = rng.choice(groups)
            waited(group, store, seen, whole, rng)
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
    parser.add_argument("--warm", action="store_true")
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
        write_data(folder)
        if options.warm:
            warm_up()
        reference, whole = undisturbed(study, folder, options.warm)
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
