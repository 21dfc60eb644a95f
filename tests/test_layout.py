"""Each file's tests are found by its path: ``src/tstar/a/b.py`` has ``tests/a/test_b.py``.

An ``__init__.py`` that holds functions or classes has ``tests/a/test_a.py``; most only say what the package offers.
"""

import ast
from pathlib import Path

import pytest

import tstar

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "tstar"
# Files that hold nothing to test: a version, and the door of ``python -m tstar``.
EXEMPT = {"__main__.py", "_version.py"}

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="an sdist's tests, without sources")


def untested(package: Path, tests: Path) -> list[str]:
    """The files of a package that have no test at their own path."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        name = inside.name
        if name == "__init__.py":
            name = f"{inside.parent.name}.py"
            if not _holds_code(path):
                continue
        if name not in EXEMPT and not _has_tests(tests / inside.with_name(f"test_{name}")):
            found.append(inside.as_posix())
    return found


def _holds_code(path: Path) -> bool:
    """Whether a file defines anything that has a name of its own."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return any(isinstance(n, kinds) and not n.name.startswith("__") for n in body)


def _has_tests(path: Path) -> bool:
    if not path.is_file():
        return False
    functions = (n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return any(isinstance(n, ast.FunctionDef) and n.name.startswith("test_") for n in functions)


def test_every_file_has_a_test_at_its_path():
    assert untested(PACKAGE, TESTS) == []


def test_a_file_without_one_is_seen(tmp_path):
    source, tests = tmp_path / "src", tmp_path / "tests"
    for name in ("a", "e", "f"):
        (source / name).mkdir(parents=True)
        (tests / name).mkdir(parents=True)
    for name in ("a/b.py", "a/__init__.py", "c.py", "d.py"):
        (source / name).touch()
    for name in ("e", "f"):
        code = "def __dir__(): ...\ndef do(): ...\n"
        (source / name / "__init__.py").write_text(code, encoding="utf-8")
    (tests / "f" / "test_f.py").write_text("def test_do():\n    pass\n", encoding="utf-8")
    (tests / "test_c.py").write_text("def test_c():\n    pass\n", encoding="utf-8")
    (tests / "test_d.py").write_text("def helper():\n    pass\n", encoding="utf-8")
    assert untested(source, tests) == ["a/b.py", "d.py", "e/__init__.py"]


def test_no_module_bears_the_name_of_a_public_function():
    """``tstar.fit`` is the function, whatever was imported before."""
    public = {*tstar.__all__} - {*tstar._SUBPACKAGES}
    modules = {p.parent.name if p.stem == "__init__" else p.stem for p in PACKAGE.rglob("*.py")}
    assert "advice" in modules
    assert public & modules == set()
