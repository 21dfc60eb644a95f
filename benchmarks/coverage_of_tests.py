"""How much of the package do the fast tests reach? Lines and branches per room, nothing excluded.

    python benchmarks/coverage_of_tests.py                     runs the tests, then writes results/quality/coverage.csv
    python benchmarks/coverage_of_tests.py --report cov.json   from a run with pytest --cov=tstar --cov-branch --cov-report=json

What runs in processes that a test starts (sweeps' workers, commands, Ray) is not counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "results" / "quality" / "coverage.csv"
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def rows(report: dict) -> list[list[object]]:
    """room, statements, lines %, branches, branches %; the whole last."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for name, file in report["files"].items():
        inside = Path(name).as_posix().partition("src/tstar/")[2]
        for room in (inside.split("/")[0], "all"):
            rooms[room].update({key: file["summary"][key] for key in COUNTS})
    order = sorted(room for room in rooms if room != "all")
    return [_row(room, rooms[room]) for room in [*order, "all"]]


def _row(room: str, counts: Counter[str]) -> list[object]:
    statements, lines, branches, taken = (counts[key] for key in COUNTS)
    share = [f"{100 * a / b:.1f}" if b else "" for a, b in ((lines, statements), (taken, branches))]
    return [room, statements, share[0], branches, share[1]]


def measure() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        options = ["--cov=tstar", "--cov-branch", f"--cov-report=json:{path}"]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *options]
        failed = subprocess.run(command, cwd=ROOT, check=False).returncode
        if failed:
            print(
                "Not all tests passed: the numbers are those of this run all the same.",
                file=sys.stderr,
            )
        return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--report", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8")) if options.report else measure()
    table = rows(report)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["room", "statements", "lines_percent", "branches", "branches_percent"])
        writer.writerows(table)
    print(
        *(f"{row[0]:14} {row[2]:>6} % of lines {row[4]:>6} % of branches" for row in table),
        sep="\n",
    )


if __name__ == "__main__":
    main()
