"""The page in the system's chromium, headless."""

from pathlib import Path

import pytest

from tests.browsing import opened


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    from tstar.lab.calculator import write

    return write(tmp_path_factory.mktemp("calculator") / "calculator.html")


@pytest.fixture
def open_page(browser, page_file):
    """A function that opens the page; it fails the test on a script error or any request but the file."""
    trouble: list[str] = []
    contexts = []

    def open_it(**settings):
        page = opened(browser, page_file, trouble, **settings)
        contexts.append(page.context)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []
