"""Tests mirror the package: each file of the core has its own, each room of the lab a folder or a file.

``src/tstar/law.py`` has ``tests/test_law.py``. ``src/tstar/lab/report/figures`` has tests that import
it, in ``tests/lab/report/figures`` or in ``tests/lab/report/test_figures.py``.
"""

import ast
from pathlib import Path

import pytest

import tstar
from tests.asserting import vacuous

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "tstar"
# Files that hold nothing to test: a version, the door of ``python -m tstar``, the public names.
EXEMPT = {"__main__.py", "_version.py", "__init__.py"}

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="an sdist's tests, without sources")


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, room: str) -> bool:
    """Whether a test file imports a package, or anything of it."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return any(f"{name}.".startswith(f"{room}.") for name in found)


def untested(package: Path, tests: Path) -> list[str]:
    """The files of the core without a test of their name, and the rooms that no test there imports."""
    files = (path.name for path in sorted(package.glob("*.py")) if path.name not in EXEMPT)
    found = [name for name in files if not (tests / f"test_{name}").is_file()]
    for place in sorted(package.rglob("__init__.py")):
        inside = place.parent.relative_to(package)
        folder = tests / inside
        own = [*folder.glob("test_*.py"), folder.with_name(f"test_{inside.name}.py")]
        room = ".".join((package.name, *inside.parts))
        if 0 < len(inside.parts) < 3 and not any(
            path.is_file() and imports(path, room) for path in own
        ):
            found.append(inside.as_posix())
    return found


def test_every_file_of_the_core_and_every_room_has_tests_in_its_place():
    assert untested(PACKAGE, TESTS) == []


def test_what_has_no_test_is_seen(tmp_path):
    source, tests = tmp_path / "pack", tmp_path / "tests"
    init = "__init__.py"
    for path, code in (
        *(
            (source / name, "")
            for name in ("a.py", "b.py", f"c/{init}", f"d/e/{init}", f"f/{init}")
        ),
        (tests / "test_a.py", ""),
        (tests / "c" / "test_x.py", "from pack.c.y import z"),
        (tests / "d" / "test_e.py", "from pack.d import e"),
        (tests / "test_f.py", "import pack.ff"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    assert untested(source, tests) == ["b.py", "f"]


def test_no_module_bears_the_name_of_a_public_function():
    modules = {p.parent.name if p.stem == "__init__" else p.stem for p in PACKAGE.rglob("*.py")}
    assert "advice" in modules
    assert {*tstar.__all__} & modules == set()


def test_every_assert_can_fail():
    found = {
        path.relative_to(TESTS).as_posix(): vacuous(parsed(path)) for path in TESTS.rglob("*.py")
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "a == 1 if b else 2",
        "(a, 'said')",
        "'text'",
        "a.b == a.b",
        "a or 1",
        "[a]",
        "(x for x in y)",
    ],
)
def test_an_assert_that_cannot_fail_is_seen(source):
    assert vacuous(ast.parse(f"assert {source}"))
    assert not vacuous(ast.parse("assert a == (1 if b else 2)\nassert f(a) == f(a)\nassert []"))
