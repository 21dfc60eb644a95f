"""Which planted faults do the tests notice?

A mutant is the source with one small fault: ``<`` for ``<=``, ``+`` for ``-``, ``and`` for ``or``, a condition negated, a number changed, a
returned value dropped, a statement left out. It is *killed* if a test of its file fails, and *survives* otherwise. Mutants are drawn by
seed, the same number from each area; a file's tests are ``tests/AREA/test_FILE.py``, its parts ``test_FILE_*.py`` and those beside
them that import the file. Lines that only raise an error's text, docstrings and annotations are left alone.

    python benchmarks/mutants.py --area core --each 100 --minutes 60
    python benchmarks/mutants.py --again        those that survived, once more: a test was written
    git archive --prefix=apart/ HEAD | tar x -C /tmp && python benchmarks/mutants.py --root /tmp/apart   # while others edit

Torch and the tests' libraries are imported once; every mutant runs in a fork, which takes it from memory: no file is changed.
Limits are of CPU time, so that a busy machine kills nothing. An outcome is written as soon as it is known, and a mutant whose outcome
is in the file already is not run again. Why a survivor is none (the last column) is written by hand, and kept.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import csv
import importlib.abc
import importlib.util
import io
import os
import random
import re
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "results" / "quality" / "mutants.csv"
COLUMNS = ["area", "file", "line", "fault", "change", "outcome", "reason"]
PATIENCE = 900  # seconds of wall time for a mutant that waits without computing
AREAS = {
    "core": "*.py",
    "curves": "lab/curves/*.py",
    "store": "lab/sweep/store*.py",
    "fitting": "lab/fitting/*.py",
}
IMPORTED_ONCE = (
    *("pytest", "numpy", "torch", "torchvision", "pandas", "scipy.optimize"),
    *("matplotlib", "sklearn.datasets", "hypothesis", "timm"),
)
_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
)
OPPOSITE: dict[type, type] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}


class Mutant(NamedTuple):
    """A fault: which file, which node of its tree, what is done to it."""

    source: Path
    path: Path
    node: int
    line: int
    what: str

    @property
    def inside(self) -> str:
        return self.path.relative_to(self.source).as_posix()


def faults(source: Path, path: Path) -> list[Mutant]:
    """Every fault that can be planted in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_alone = set(_left_alone(tree))
    found = []
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in left_alone:
            continue
        what = _fault(node)
        if what:
            found.append(Mutant(source, path, number, getattr(node, "lineno", 0), what))
    return found


def _left_alone(tree: ast.AST) -> Iterator[int]:
    """Nodes whose change is no fault: types, docstrings, what is raised, names under TYPE_CHECKING, ``__all__``."""
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = []
        if isinstance(node, ast.Raise):
            roots = [node]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            roots = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            roots = [node.returns, *node.decorator_list]
        elif (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)) or (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]).startswith(("__", "_LAZY"))
        ):
            roots = [node]
        for root in roots:
            if root is not None:
                yield from (id(child) for child in ast.walk(root))


def _fault(node: ast.AST) -> str:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
        return "compare"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPPOSITE:
        return "operator"
    if isinstance(node, ast.If | ast.IfExp):
        return "negate"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return "number"
    if isinstance(node, ast.Return) and node.value is not None:
        return "return None"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return "leave out"
    return ""


def planted(mutant: Mutant) -> tuple[ast.Module, str]:
    """The tree with the fault, and what the line was and is."""
    tree = ast.parse(mutant.path.read_text(encoding="utf-8"))
    node = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.node)
    shown = node.test if isinstance(node, ast.If) else node
    before = ast.unparse(shown)
    if isinstance(node, ast.Compare):
        node.ops[0] = OPPOSITE[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = OPPOSITE[type(node.op)]()
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        shown = node.test if isinstance(node, ast.If) else node
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1
    elif isinstance(node, ast.Return | ast.Expr):
        node.value = ast.Constant(None)
    ast.fix_missing_locations(tree)
    return tree, f"{before} → {ast.unparse(shown)}"


class Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from the mutant's tree; everything else is found as usual."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.path.parts[len(mutant.source.parent.parts) :]
        parts = (*parts[:-1], mutant.path.stem)
        self.package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.package else parts)
        self.tree, self.path = planted(mutant)[0], mutant.path

    def find_spec(self, name: str, path: object = None, target: object = None):  # type: ignore[no-untyped-def]
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self.path,
            loader=self,
            submodule_search_locations=[str(self.path.parent)] if self.package else None,
        )

    def exec_module(self, module: object) -> None:
        code = compile(copy.deepcopy(self.tree), str(self.path), "exec")
        exec(code, vars(module))


def tests_of(mutant: Mutant, root: Path) -> tuple[Path, ...]:
    """The tests of a mutant's file: its own, and those of the same folder that import it."""
    folder, stem = root / "tests" / Path(mutant.inside).parent, mutant.path.stem
    package = ".".join(("tstar", *Path(mutant.inside).parts[:-1]))
    imports = re.compile(rf"from {package}(\.{stem} import| import .*\b{stem}\b)")
    own = sorted({folder / f"test_{stem}.py", *folder.glob(f"test_{stem}_*.py")})
    others = (path for path in sorted(folder.glob("test_*.py")) if path not in own)
    return (*own, *(path for path in others if imports.search(path.read_text(encoding="utf-8"))))


def survives(
    mutant: Mutant | None, root: Path, targets: tuple[Path, ...], seconds: int
) -> tuple[str, float]:
    """("killed", "survived" or "killed (time)", CPU seconds): tests in a fork. Without a mutant: do they pass?"""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.chdir(root)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.path[:0] = [str(root / "src"), str(root)]
        if mutant is not None:
            sys.meta_path.insert(0, Planted(mutant))
        import pytest

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            early = "-Wignore::pytest.PytestAssertRewriteWarning"  # plugins that were imported once
            options = [early, "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
            code = pytest.main([*options, *map(str, targets)])
        os._exit(int(code))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            outcome = "survived" if code == 0 else "killed" if code > 0 else "killed (time)"
            return outcome, usage.ru_utime + usage.ru_stime
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed (time)", 0.0


def draw(root: Path, areas: Iterable[str], each: int, seed: int) -> list[tuple[str, Mutant]]:
    source, drawn = root / "src" / "tstar", []
    for area in areas:
        every = [m for path in sorted(source.glob(AREAS[area])) for m in faults(source, path)]
        every = [m for m in every if not m.path.name.startswith("_")]  # no tests of their own
        chosen = random.Random(f"{seed} {area}").sample(every, min(each, len(every)))
        print(f"{area}: {len(chosen)} of {len(every)} mutants", flush=True)
        drawn += [(area, mutant) for mutant in chosen]
    random.Random(seed).shuffle(drawn)  # so that an early end leaves a fair sample
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--each", type=int, default=22, help="mutants per area")
    parser.add_argument("--minutes", type=float, default=20, help="of CPU time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--area", action="append", choices=AREAS)
    parser.add_argument("--root", type=Path, default=ROOT, help="another copy of the repository")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--again", action="store_true", help="run survivors once more")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in IMPORTED_ONCE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.split(".")[0] == "tstar" for name in sys.modules)
    root = options.root.resolve()
    known: dict[tuple[str, ...], list[str]] = {}
    if options.output.is_file():
        with options.output.open(encoding="utf-8", newline="") as file:
            known = {tuple(row[:5]): [*row, ""][:7] for row in list(csv.reader(file))[1:]}
    drawn = {
        (area, m.inside, str(m.line), m.what, planted(m)[1][:160]): m
        for area, m in draw(root, options.area or AREAS, options.each, options.seed)
    }
    # What is known of other code is not known of this.
    rows = {row: known[row] for row in drawn if row in known}
    if options.again:
        rows = {row: one for row, one in rows.items() if one[5] != "survived"}
    spent, alone = 0.0, dict[tuple[Path, ...], float]()
    for row, mutant in drawn.items():
        if row in rows or spent > 60 * options.minutes:
            continue
        tests = tests_of(mutant, root)
        if tests not in alone:
            outcome, alone[tests] = survives(None, root, tests, 600)
            spent += alone[tests]
            if outcome != "survived":
                print(f"the tests of {mutant.inside} do not pass as they are", flush=True)
                alone[tests] = -1.0
        if alone[tests] < 0:
            continue
        outcome, seconds = survives(mutant, root, tests, int(10 * alone[tests] + 30))
        spent += seconds
        reason = known[row][6] if row in known and outcome == "survived" else ""
        rows[row] = [*row, outcome, reason]
        if outcome == "survived":
            print(f"survived: {mutant.inside}:{mutant.line}: {row[4]}", flush=True)
        with options.output.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([COLUMNS, *sorted(rows.values())])
    for area in AREAS:
        of_area = [row[5] != "survived" for row in rows.values() if row[0] == area]
        print(f"{area}: {sum(of_area)} of {len(of_area)} killed")
    killed = sum(row[5] != "survived" for row in rows.values())
    print(f"all: {killed} of {len(rows)} killed, {100 * killed / max(1, len(rows)):.1f} %")
    print(f"{spent / 60:.1f} min of CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
