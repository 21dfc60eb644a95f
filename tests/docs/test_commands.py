"""Every script that a page names is there, and imports what exists."""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("results/**/*.md")]
SCRIPTS = sorted([*ROOT.glob("research/**/*.py"), *ROOT.glob("benchmarks/*.py")])


def named(text: str) -> set[str]:
    """The paths of the scripts that a page says how to run; scripts of an older commit do not count."""
    modules = re.findall(r"python -m (research[\w.]+)", text)
    files = re.findall(r"python ((?:research|benchmarks)/\w+\.py)", text)
    return {*files, *(f"{module.replace('.', '/')}.py" for module in modules)}


def test_scripts_that_pages_name_are_there():
    found = {str(page.relative_to(ROOT)): named(page.read_text(encoding="utf-8")) for page in PAGES}
    assert sum(map(len, found.values())) > 20
    assert {p: s for p, s in found.items() if not all((ROOT / each).is_file() for each in s)} == {}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_scripts_import_from_the_project_exists(path, monkeypatch):
    """Also what they import inside functions."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), str(ROOT), *sys.path])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("tstar", "research")
        ):
            try:
                module = importlib.import_module(node.module)
            except ModuleNotFoundError as error:
                if error.name.partition(".")[0] in ("tstar", "research"):
                    raise
                pytest.skip(f"{error.name} is not installed")  # what only a study needs
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
