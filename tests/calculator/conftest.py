"""The page in the system's chromium, headless. Nothing is downloaded; without a browser the tests skip."""

import shutil
from pathlib import Path

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
]


# A module's, not the session's: playwright keeps an event loop running in this thread while it is open, and other
# modules have loops of their own.
@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed: the calculator was not tried in a browser")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    from tstar.calculator import write

    return write(tmp_path_factory.mktemp("calculator") / "calculator.html")


@pytest.fixture
def open_page(browser, page_file):
    """A function that opens the page; it fails the test on a script error or any request but the file."""
    trouble: list[str] = []
    contexts = []

    def open_it(**settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(f"script error: {error}"))
        page.on(
            "console",
            lambda said: trouble.append(said.text) if said.type == "error" else None,
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:"))
                else trouble.append(f"request: {request.url}")
            ),
        )
        page.goto(page_file.as_uri())
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert trouble == []
