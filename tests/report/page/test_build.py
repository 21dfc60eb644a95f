"""The page: one file, nothing from outside, names as text."""

import html
import json
import re
import shlex
from dataclasses import replace

import pytest

from tests.report.planted import planted, write
from tstar.curves.resampling import Estimate
from tstar.report.headline import headline
from tstar.report.page.build import _headline
from tstar.report.records import load
from tstar.report.write import write_report

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def nasty_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    rows = planted(
        tasks=((f"{NASTY} {{{{title}}}} $x$", 2.0, 10), ("other", 9.0, 10)),
        widths=(64,),
        seeds=2,
        grid=(1.0, 4.0, 16.0),
        methods=("insert-ln",),
    )
    store = write(folder / "runs.db", rows, diverged=(1,))
    return write_report(store, folder / "out", formats=("svg",), fits=False, title=NASTY)


def test_the_page_is_one_file_without_the_outside(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    own = re.sub(r'xmlns(:\w+)?="[^"]*"|"http://www.w3.org/2000/svg"', "", text)
    assert "http:" not in own
    assert "https:" not in own
    assert not re.search(r"<(link|img|iframe)\b|@import|url\((?!#)", own)
    assert not re.search(r'<script[^>]*\bsrc=|href="(?!#|data:image/png)', own)


def test_names_are_text_on_the_page(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    assert NASTY not in text
    assert len(re.findall(r"<script\b", text)) == 3  # ours: two of data, one of code
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{title}} $x$" in text  # a placeholder in a name is text as well


def test_the_page_says_what_it_must(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    folder = nasty_page.page.parent
    assert load(folder.parent / "runs.db").checksum in text
    command = shlex.join(["tstar", "report", str(folder.parent / "runs.db"), "--metric", "test"])
    assert html.escape(command) in text
    assert "diverged" in text
    assert "95 %" in text
    assert "prefers-color-scheme: dark" in text
    for path in nasty_page.figures:
        assert path.exists()
    drawn = re.findall(r'<figure id="fig-([\w-]+)">', text)
    assert len(drawn) == 8  # those made from runs
    about = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert all((folder / name).exists() for name in about["figures"])
    assert about["headline"]["conditions"] == 2
    assert (folder / "tables" / "conditions.tex").exists()


@pytest.mark.slow
def test_the_page_is_the_same_every_time(nasty_page, tmp_path):
    store = nasty_page.page.parent.parent / "runs.db"
    again = write_report(store, tmp_path / "again", formats=(), fits=False, title=NASTY)
    assert again.page.read_bytes() == nasty_page.page.read_bytes()


def test_the_tile_of_the_regret_has_a_distance_and_a_side(records):
    found = replace(headline(records), regret=Estimate(-0.012, -0.05, 0.03))
    tile = _headline(found).rpartition('<div class="card">')[2]
    assert tile.startswith("<strong>0.01</strong><span>points above the best T of the grid")
    assert "95 %: 0.05 above to 0.03 below" in tile
