"""The page of all keys says what the code says."""

from pathlib import Path

import pytest

from research.study_keys import SPEC_FIELDS, meanings, page
from tstar.lab.sweep.spec import CONFIG_FIELDS, Spec
from tstar.lab.training.config import Config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "study.md"


@pytest.mark.skipif(not PAGE.exists(), reason="an sdist's tests, without docs")
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_key_has_a_meaning_and_stands_in_the_page():
    assert set(SPEC_FIELDS) <= set(meanings(Spec))
    assert set(CONFIG_FIELDS) <= set(meanings(Config))
    text = page()
    for name in (*SPEC_FIELDS, *CONFIG_FIELDS):
        assert f"| `{name}`" in text
