"""Who may import whom: the map in CONTRIBUTING.md, read as it stands; and nothing that one system or locale alone has."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tstar"
MAP = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}

POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {"fork", "forkpty", "getuid", "geteuid", "killpg", "kill", "setsid", "SIGKILL"}
# What is there elsewhere too, or is asked for only where it is: file, name.
GUARDED = {
    ("sweep/shared.py", "kill"),
    ("sweep/provenance.py", "/proc/cpuinfo"),
    ("data/fashion.py", "/usr/share/datasets/fashion-mnist"),
    ("data/streams.py", "fork"),  # elsewhere it reads in the calling process
    ("data/streams.py", "kill"),
    ("data/streams.py", "SIGKILL"),
}

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="an sdist's tests, without sources")


def rooms(text: str) -> list[str]:
    """The rooms of the map, from the foundation up."""
    block = re.search(r"^## The map\n.*?^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block
    return [line.split()[0].rstrip("/").removesuffix(".py") for line in block[1].splitlines()]


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


def upwards(trees: dict[Path, ast.AST], order: list[str]) -> list[str]:
    """The imports of a room from the same level of the house or above it."""
    wrong = []
    for path, tree in trees.items():
        inside = path.relative_to(PACKAGE)
        room = inside.parts[0].removesuffix(".py")
        if room == "__init__":
            continue  # the door leads everywhere
        for name in imported(tree, ["tstar", *inside.parts[:-1]]):
            other = (name + ".").split(".")[1]
            known = name.startswith("tstar.") and other in order
            if known and other != room and order.index(other) >= order.index(room):
                wrong.append(f"{inside} imports {name}")
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


def test_the_map_names_every_room_once():
    order = rooms(MAP)
    assert len(set(order)) == len(order)
    there = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.name != "__pycache__"}
    there -= {"__init__", "py.typed"}
    assert set(order) == there


def test_a_room_imports_only_what_lies_below_it():
    """So there is no cycle between rooms either."""
    assert upwards(MODULES, rooms(MAP)) == []


def test_an_import_of_what_lies_above_is_seen():
    for source in (
        "import tstar.cli",
        "from tstar.cli import app",
        "def f():\n    from tstar import cli",
        "from ..cli import app",
    ):
        assert upwards({PACKAGE / "formula" / "x.py": ast.parse(source)}, rooms(MAP)), source
    assert not upwards({PACKAGE / "cli" / "x.py": ast.parse("import tstar.formula")}, rooms(MAP))


def test_importing_the_whole_formula_loads_no_torch():
    names = [f"tstar.formula.{p.stem}" for p in (PACKAGE / "formula").glob("[a-z]*.py")]
    report = f"import {', '.join(names)}, sys; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.split() == ["False"]


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


def without_encoding(tree: ast.AST) -> list[int]:
    """Lines that read or write text in the locale's encoding, which is not UTF-8 everywhere."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        words = [ast.unparse(argument) for argument in node.args]
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        as_text = given.get("text") == "True" or given.get("universal_newlines") == "True"
        if name in ("read_text", "write_text") and owner:
            as_text = len(words) < (1 if name == "read_text" else 2)
        elif name == "open" and owner not in ("Image", "archive", "os", "pil", "webbrowser"):
            modes = words[:1] if owner else words[1:2]  # a path's own open has the mode first
            as_text = "b" not in given.get("mode", (modes or ["r"])[0])
        if as_text and "encoding" not in given:
            found.append(node.lineno)
    return found


def test_text_is_read_and_written_in_a_named_encoding():
    found = {
        str(path.relative_to(ROOT)): without_encoding(ast.parse(path.read_text(encoding="utf-8")))
        for folder in ("src", "tests", "benchmarks", "examples", "docs")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "open('a.txt')",
        "path.open('w', newline='')",
        "path.read_text()",
        "path.write_text('x')",
        "subprocess.run(words, text=True)",
    ],
)
def test_a_missing_encoding_is_seen(source):
    assert without_encoding(ast.parse(source))
    named = source.replace("()", "(encoding='utf-8')").replace("')", "', encoding='utf-8')")
    assert not without_encoding(ast.parse(named.replace("text=True", "encoding='utf-8'")))


def test_bytes_need_no_encoding():
    assert not without_encoding(ast.parse("open('a', 'rb'); path.open('wb'); path.read_bytes()"))
