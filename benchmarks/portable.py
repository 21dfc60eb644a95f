"""Do the fast tests pass on machines that this one is not?

Each setting makes this machine behave like another: fewer instructions for oneDNN, ATen and NumPy, another code path of
MKL, two threads, another order of the tests and of hashes, a locale whose files are not UTF-8, a language other than
English, another time zone, a home that cannot be written. Property tests draw new examples in the random orders.

    python benchmarks/portable.py                      every setting, one after another
    python benchmarks/portable.py --only "ATen default + Turkish" --tests tests/formula     two at once, some tests

One row per setting goes to ``results/quality/portable.csv`` (rows of settings that were not run are kept). The exit
code is 1 where a test failed.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "results" / "quality" / "portable.csv"
COLUMNS = ["setting", "passed", "failed", "skipped", "seconds", "processor", "date", "tests"]


class Setting(NamedTuple):
    """What is set, the further arguments of pytest, and why it cannot be tried here (if so)."""

    variables: dict[str, str]
    arguments: tuple[str, ...] = ()
    impossible: str = ""


def settings(scratch: Path) -> dict[str, Setting]:
    """Every setting by name."""
    found = {"as it is": Setting({})}
    for isa in ("SSE41", "AVX2", "AVX512_CORE"):
        found[f"oneDNN {isa}"] = Setting({"ONEDNN_MAX_CPU_ISA": isa}, (), _lacks(isa))
    for level in ("default", "avx2", "avx512"):
        found[f"ATen {level}"] = Setting({"ATEN_CPU_CAPABILITY": level}, (), _lacks(level.upper()))
    found["NumPy baseline"] = Setting({"NPY_DISABLE_CPU_FEATURES": _numpy_features()})
    found["MKL compatible"] = Setting({"MKL_CBWR": "COMPATIBLE"})
    found["two threads"] = Setting({"OMP_NUM_THREADS": "2"})
    found["another hash seed"] = Setting({"PYTHONHASHSEED": "4242"})
    for seed in (1, 2):
        found[f"random order {seed}"] = Setting(
            {},
            (
                *("-p", "randomly", f"--randomly-seed={seed}"),
                *("--hypothesis-profile=random", f"--hypothesis-seed={seed}"),
            ),
        )
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found["ASCII locale"] = Setting(ascii_only)
    found["Turkish"] = _language("tr_TR", scratch)
    found["Chatham time"] = Setting({"TZ": "Pacific/Chatham"})
    nowhere = Path(os.devnull) / "home"  # cannot be made, not even by root
    caches = {
        "XDG_CACHE_HOME": str(nowhere / ".cache"),
        "XDG_CONFIG_HOME": str(nowhere / ".config"),
    }
    found["no home"] = Setting({"HOME": str(nowhere), **caches})
    return found


def joined(names: str, every: dict[str, Setting]) -> Setting:
    """Several settings at once, "a + b": a machine that differs in all of them."""
    parts = [every[name] for name in names.split(" + ")]
    return Setting(
        {key: value for part in parts for key, value in part.variables.items()},
        tuple(argument for part in parts for argument in part.arguments),
        "; ".join(filter(None, (part.impossible for part in parts))),
    )


def _lacks(isa: str) -> str:
    """Why an instruction set cannot be tried: asked for what is not there, ATen stops with SIGILL."""
    needed = {"AVX2": "AVX2", "AVX512": "AVX512", "AVX512_CORE": "AVX512"}.get(isa)
    import torch

    there = torch.backends.cpu.get_cpu_capability()
    order = ["DEFAULT", "AVX2", "AVX512"]
    if needed is None or there not in order or order.index(there) >= order.index(needed):
        return ""
    return f"this processor has {there} at most"


def _numpy_features() -> str:
    """What NumPy dispatches on and this processor has: all of it off."""
    from numpy._core import _multiarray_umath as core

    return " ".join(name for name in core.__cpu_dispatch__ if core.__cpu_features__[name])


def _language(name: str, scratch: Path) -> Setting:
    """A language from the system's sources of locales, compiled where they are."""
    if shutil.which("localedef"):
        target = scratch / "locales" / f"{name}.UTF-8"
        target.parent.mkdir(exist_ok=True)
        command = ["localedef", "-i", name, "-f", "UTF-8", str(target)]
        subprocess.run(command, capture_output=True, check=False)
        if target.is_dir():
            return Setting(
                {"LOCPATH": str(target.parent), "LC_ALL": target.name, "LANG": target.name}
            )
    return Setting({}, (), "no sources of locales on this machine")


def run(name: str, setting: Setting, tests: list[str], workers: int) -> dict[str, object]:
    """One row. What failed is printed."""
    row: dict[str, object] = {
        "setting": name,
        "processor": _processor(),
        "date": time.strftime("%Y-%m-%d"),
        "tests": " ".join(tests) or "all fast",
    }
    if setting.impossible:
        return {**row, "passed": setting.impossible}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", str(workers)]
    start = time.monotonic()
    done = subprocess.run(
        [*command, *setting.arguments, *tests],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **setting.variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    counts = dict.fromkeys(("passed", "failed", "skipped", "error"), 0)
    for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout[-400:]):
        counts[word] = int(number)
    if done.returncode and not counts["failed"]:
        counts["failed"] = max(1, counts["error"])
    if done.returncode:
        print("\n".join(re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)))
        (ROOT / "scratch").mkdir(exist_ok=True)
        log = ROOT / "scratch" / f"portable {name}.log"
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        print(f"the whole output: {log}")
    counts.pop("error")
    return {**row, **counts, "seconds": round(time.monotonic() - start)}


def _processor() -> str:
    from tstar.lab.sweep.provenance import _processor as processor

    return f"{processor()} ({platform.machine()})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", action="append", help="a setting's name; may be repeated")
    parser.add_argument("--tests", nargs="*", default=[], help="files or folders; all by default")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    rows: dict[str, dict[str, object]] = {}
    if options.output.is_file():
        with options.output.open(encoding="utf-8", newline="") as file:
            rows = {row["setting"]: dict(row) for row in csv.DictReader(file)}
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        every = settings(Path(scratch))
        for name in options.only or every:
            rows[name] = row = run(name, joined(name, every), options.tests, options.workers)
            print({k: row.get(k, "") for k in COLUMNS[:5]}, flush=True)
            failed |= bool(row.get("failed"))
            options.output.parent.mkdir(parents=True, exist_ok=True)
            with options.output.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows.values())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
