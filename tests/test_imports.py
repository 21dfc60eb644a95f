"""Who may import whom: the core never imports the lab; and nothing that one system alone has."""

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.test_package import loaded_by

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tstar"
MAP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}

# The files of the core in the order in which they are read; each imports those before it alone.
PURE = ("text", "errors", "imports", "training", "law", "formula")  # Python alone
MODEL = ("samples", "head", "output_layer", "task", "schedule", "groups", "monitor", "surgery")
ORDER = (*PURE, *MODEL, "neighbors", "difficulty", "case", "recipes", "advice")
ON_USE = {("formula", "output_layer")}  # temperature(model) alone

POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {"fork", "forkpty", "getuid", "geteuid", "killpg", "kill", "setsid", "SIGKILL"}
# What is there elsewhere too, or is asked for only where it is: file, name.
GUARDED = {
    ("lab/sweep/shared.py", "kill"),
    ("lab/sweep/provenance.py", "/proc/cpuinfo"),
    ("lab/data/catalogue.py", "/usr/share/datasets/fashion-mnist"),
}

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="an sdist's tests, without sources")


def tree(text: str) -> list[str]:
    """The files and rooms that the tree in CONTRIBUTING.md names."""
    block = re.search(r"^## The tree\n.*?^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block
    return re.findall(r"^ {2}(\w+)(?:\.py|/)", block[1], re.MULTILINE)


def imported(tree: ast.AST, package: list[str]) -> set[str]:
    """Every module that a tree imports, also inside functions; relative names made absolute."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{start}.{alias.name}" for alias in node.names}
    return found


def from_lab(trees: dict[Path, ast.AST]) -> set[str]:
    """The files of the core that import the lab, also inside functions."""
    return {
        path.name
        for path, tree in trees.items()
        if path.parent == PACKAGE and path.name not in ("__init__.py", "__main__.py")
        for name in imported(tree, ["tstar"])
        if f"{name}.".startswith("tstar.lab.")
    }


def out_of_order(trees: dict[Path, ast.AST]) -> list[str]:
    """Imports of a file of the core from one that is read later, or of a pure file from outside."""
    wrong = []
    for path, tree in trees.items():
        if path.parent != PACKAGE or path.stem not in ORDER:
            continue
        above = ORDER[: ORDER.index(path.stem)]
        for name in imported(tree, ["tstar"]):
            first, _, rest = name.partition(".")
            module = rest.partition(".")[0]
            ours = module in above or (path.stem, module) in ON_USE
            outside = first in (*sys.stdlib_module_names, "rich") or path.stem not in PURE
            outside |= name == "torch.nn"  # for types alone
            if not (ours if first == "tstar" else outside):
                wrong.append(f"{path.name} imports {name}")
    return sorted(wrong)


def of_one_system(tree: ast.AST, name: str) -> set[str]:
    """POSIX-only modules, names of ``os`` and ``signal``, and paths, which Windows or macOS lack."""
    found = {module.split(".")[0] for module in imported(tree, [])} & POSIX_MODULES
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("os", "signal") and node.attr in POSIX_NAMES:
                found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if re.match(r"/(proc|tmp|dev|etc|usr|var)(/|$)", text) or text == "fork":
                found.add(text)
    return {what for what in found if (name, what) not in GUARDED}


def test_the_tree_names_every_file_of_the_core():
    named = tree(MAP)
    assert len(set(named)) == len(named)
    there = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" and not p.name.startswith("_")}
    assert {*named} == {*there, "lab"} == {*ORDER, "lab"}


def test_the_core_never_imports_the_lab():
    assert from_lab(MODULES) == set()


def test_imports_of_the_core_point_one_way():
    assert out_of_order(MODULES) == []


def between_rooms(trees: dict[Path, ast.AST], room: str, other: str) -> set[str]:
    """The files of a room of the lab that import another room."""
    return {
        path.name
        for path, tree in trees.items()
        if PACKAGE / "lab" / room in path.parents
        for name in imported(tree, ["tstar", "lab", room])
        if f"{name}.".startswith(f"tstar.lab.{other}.")
    }


@pytest.mark.parametrize("rooms", [("methods", "training"), ("training", "methods")])
def test_methods_and_the_training_loop_do_not_import_each_other(rooms):
    room, other = rooms
    assert between_rooms(MODULES, room, other) == set()
    wrong = ast.parse(f"def f():\n    from tstar.lab.{other} import x")
    assert between_rooms({PACKAGE / "lab" / room / "a.py": wrong}, room, other) == {"a.py"}


@pytest.mark.parametrize(
    "source",
    [
        "import tstar.lab.cli",
        "from tstar.lab.cli import app",
        "def f():\n    from tstar import lab",
        "from .lab import data",
    ],
)
def test_an_import_of_the_lab_is_seen(source):
    assert from_lab({PACKAGE / "formula.py": ast.parse(source)}) == {"formula.py"}
    assert out_of_order({PACKAGE / "formula.py": ast.parse(source)})
    assert not from_lab({PACKAGE / "lab" / "x.py": ast.parse(source)})


def test_an_import_of_torch_or_of_what_lies_above_is_seen():
    for source in (
        "import torch.utils",
        "from tstar.advice import advise",
        "from tstar import samples",
    ):
        assert out_of_order({PACKAGE / "formula.py": ast.parse(source)}), source
    assert not out_of_order({PACKAGE / "formula.py": ast.parse("import json, tstar.law")})
    for name in ("head", "surgery", "groups", "monitor"):
        assert out_of_order({PACKAGE / f"{name}.py": ast.parse("import tstar.advice")})


def test_importing_the_pure_files_loads_no_torch():
    assert loaded_by("import " + ", ".join(f"tstar.{name}" for name in PURE)) == set()


def test_nothing_needs_one_system():
    found = {
        str(path.relative_to(PACKAGE)): of_one_system(tree, path.relative_to(PACKAGE).as_posix())
        for path, tree in MODULES.items()
    }
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    ["import fcntl", "def f():\n    import pwd", "os.fork()", "open('/proc/self')", "ctx('fork')"],
)
def test_what_one_system_has_is_seen(source):
    assert of_one_system(ast.parse(source), "x.py")
