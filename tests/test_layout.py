"""Tests mirror the package: each file of the core has its own, each room of the lab a folder or a file.

``src/tstar/law.py`` has ``tests/test_law.py``, ``src/tstar/lab/report`` has tests in ``tests/lab/report``.
"""

import ast
from pathlib import Path

import pytest

import tstar

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "tstar"
# Files that hold nothing to test: a version, the door of ``python -m tstar``, the public names.
EXEMPT = {"__main__.py", "_version.py", "__init__.py"}
# What is true whatever the code under test does; ``a == 1 if b else 2`` is, where b is false.
TRUE = (ast.IfExp, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.GeneratorExp, ast.Lambda, ast.JoinedStr)  # fmt: skip


@pytest.mark.skipif(not PACKAGE.is_dir(), reason="an sdist's tests, without sources")
def test_every_file_of_the_core_and_every_room_has_tests_in_its_place():
    files = [path.name for path in PACKAGE.glob("*.py") if path.name not in EXEMPT]
    rooms = [path.parent.name for path in (PACKAGE / "lab").glob("*/__init__.py")]
    assert len(files) > 15
    assert len(rooms) > 10
    assert [name for name in files if not (TESTS / f"test_{name}").is_file()] == []
    found = {path.relative_to(TESTS / "lab").parts[0] for path in TESTS.glob("lab/**/test_*.py")}
    assert [room for room in rooms if not {room, f"test_{room}.py"} & found] == []


def test_no_module_bears_the_name_of_a_public_function():
    modules = {p.parent.name if p.stem == "__init__" else p.stem for p in PACKAGE.rglob("*.py")}
    assert "advice" in modules
    assert {*tstar.__all__} & modules == set()


def test_every_assert_can_fail():
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and isinstance(node.test, TRUE)
    ]
    assert found == []
