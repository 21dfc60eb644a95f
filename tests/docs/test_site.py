"""The site builds without a warning, and its own links lead somewhere."""

import re
import shlex
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_links_lead_to_files(site: Path):
    missing = []
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) >= 14
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
    from tstar.lab.calculator import page

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
        assert f'id="tstar.{name}"' in text, name


@pytest.mark.slow
def test_every_parameter_of_the_api_is_one_name(site: Path):
    """A docstring's "a, b: …" would become one parameter that is neither."""
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    names = re.findall(r"<b><code>([^<]*)</code></b>\s*\(", page)
    assert len(names) > 50
    assert [name for name in names if not re.fullmatch(r"\*{0,2}\w+", name)] == []


@pytest.mark.slow
def test_the_copy_button_takes_the_commands_alone(site: Path):
    page = (site / "index.html").read_text(encoding="utf-8")
    blocks = re.findall(r'data-copy="([^"]*)"', page)
    copied = [line for text in blocks for line in unescape(text).splitlines()]
    assert "tstar temperature --features 2048 --classes 8 --csg 3.85" in copied
    assert not any(line.startswith("$") for line in copied)
    assert page.count('class="gp"') == len(copied)


@pytest.mark.slow
def test_the_home_page_has_the_figure_and_pages_link_to_the_results(site: Path):
    page = (site / "index.html").read_text(encoding="utf-8").partition("<article")[2]
    assert "figures/demo.png" in page
    page = (site / "practitioners" / "index.html").read_text(encoding="utf-8")
    assert 'href="../results/recipes/">' in page


@pytest.mark.slow
def test_every_figure_is_in_the_gallery(site: Path):
    page = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    results = ROOT / "results"
    kept = [p for ending in ("png", "svg") for p in results.rglob(f"*.{ending}")]
    assert len(kept) >= 8
    for picture in kept:
        assert f'src="{picture.relative_to(results).as_posix()}"' in page, picture
    for picture in (ROOT / "docs" / "figures").iterdir():
        assert f'src="../figures/{picture.name}"' in page, picture
    from tstar.lab.report import FIGURES

    assert [name for name in FIGURES if f'src="report/{name}.svg"' not in page] == []


@pytest.mark.slow
def test_the_gallery_s_commands_make_its_figures(site: Path, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from tstar.lab.cli.app import _load_commands, app
    from tstar.lab.report import FIGURES

    _load_commands()
    monkeypatch.chdir(ROOT)
    page = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    found = [unescape(text) for text in re.findall(r'data-copy="(tstar figure [^"]*)"', page)]
    assert len(found) == len(FIGURES)
    for command in found:
        *words, name = shlex.split(command)[1:]
        done = CliRunner().invoke(app, [*words, str(tmp_path / name)], catch_exceptions=False)
        assert done.exit_code == 0, command
        drawn = (tmp_path / name).read_text(encoding="utf-8")
        kept = (site / "gallery" / "report" / name).read_text(encoding="utf-8")
        # The file draws its letters, the page names them; size and lines are the same.
        for what in (r'viewBox="[^"]*"', r'd="M [^"]*" clip-path'):
            assert re.findall(what, drawn) == re.findall(what, kept), command


@pytest.mark.slow
def test_examples_of_the_api_are_code(site: Path):
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    assert "<blockquote>" not in page
    assert '<span class="gp">&gt;&gt;&gt; </span>' in page
    assert "doctest:" not in page
