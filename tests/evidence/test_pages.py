"""The tables in the written results are those of the files beside them."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "benchmarks" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["results/README.md", "results/budget/README.md", "docs/training.md"]
)
def test_pages_have_the_tables_of_the_files(pages, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "<!-- table " in text
    assert pages.filled(text) == text, "run python benchmarks/pages.py"


def test_another_number_is_seen(pages):
    slot = "<!-- table powers -->\n\n|  | lr·steps |\n\n<!-- end of table -->"
    assert pages.filled(slot) == slot.replace("|  | lr·steps |", pages.powers())
    assert "conditions" in pages.powers()
