"""The site builds without a warning, and its own links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("material", reason="the extra docs is not installed")
    pytest.importorskip("mkdocstrings", reason="the extra docs is not installed")
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(target)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return target


@pytest.mark.slow
def test_links_lead_to_files(site: Path):
    missing = []
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) >= 9
    for page in pages:
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / unquote(link)).resolve()
            if not (target.is_file() or (target / "index.html").is_file()):
                missing.append((page.name, link))
    assert missing == []


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="https?:', text), page
        assert not re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="https?:', text), page


@pytest.mark.slow
def test_the_tables_of_the_scripts_and_the_calculator_are_in(site: Path):
    from tstar.calculator import page

    assert (site / "calculator" / "page.html").read_text(encoding="utf-8") == page()
    assert "task-difficulty" in (site / "researchers" / "index.html").read_text(encoding="utf-8")
    for html in site.rglob("*.html"):
        if html.parent.name != "calculator":
            assert "{{" not in html.read_text(encoding="utf-8").partition("<article")[2], html


@pytest.mark.slow
def test_every_public_name_is_in_the_api(site: Path):
    import tstar

    text = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in tstar.__all__:
        assert f'id="tstar.{name}"' in text or name in ("data", "models", "paper"), name
