"""The tables in the written results are those of the files beside them."""

from pathlib import Path

import pytest

from research.pages import PAGES

ROOT = Path(__file__).parents[2]
pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def pages():
    from research import pages

    return pages


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_the_tables_of_the_files(pages, name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "<!-- table " in text
    assert pages.filled(text) == text, "run python -m research.pages"


def test_another_number_is_seen(pages):
    slot = "<!-- table powers -->\n\n|  | lr·steps |\n\n<!-- end of table -->"
    assert pages.filled(slot) == slot.replace("|  | lr·steps |", pages.powers())
    assert "conditions" in pages.powers()
