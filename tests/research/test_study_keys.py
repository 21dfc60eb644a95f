"""The page of all keys says what the table of fields says."""

from pathlib import Path

import pytest

from research.study_keys import page
from tstar.lab.sweep.spec import FIELDS, STUDY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "study.md"


@pytest.mark.skipif(not PAGE.exists(), reason="an sdist's tests, without docs")
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_key_stands_in_the_page_with_its_meaning():
    lines = {line.split("`")[1]: line for line in page().splitlines() if line.startswith("| `")}
    assert [*lines] == [*STUDY]
    assert all(FIELDS[name].metadata["meaning"] in line for name, line in lines.items())
