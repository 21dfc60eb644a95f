"""The page and its folder: one file, nothing from outside, names as text."""

import html
import re
import shlex
from dataclasses import replace

import pandas as pd
import pytest

from tests.lab.report.planted import TASKS, planted, write
from tstar.lab.report.records import load
from tstar.lab.report.write import facts, origin, values, write_report

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def nasty_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    rows = planted(
        tasks=((f"{NASTY} {{{{title}}}} $x$", 2.0, 10), ("other", 9.0, 10)),
        widths=(64, 128),
        seeds=2,
        grid=(1.0, 4.0, 16.0),
        methods=("insert-ln",),
    )
    store = write(folder / "runs.db", rows, diverged=(1,))
    return write_report(store, folder / "out", fits=False)


def test_the_page_is_one_file_without_the_outside(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    own = re.sub(r'xmlns(:\w+)?="[^"]*"|"http://www.w3.org/2000/svg"', "", text)
    assert "http:" not in own
    assert "https:" not in own
    assert not re.search(r"<(link|img|iframe)\b|@import|url\((?!#)", own)
    assert not re.search(r'<script[^>]*\bsrc=|href="(?!#|data:image/png)', own)
    assert 'http-equiv="refresh"' not in own


def test_names_are_text_on_the_page(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    assert NASTY not in text
    assert len(re.findall(r"<script\b", text)) == 1  # ours
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{title}} $x$" in text  # a placeholder in a name is text as well


def test_the_page_says_what_it_must(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    folder = nasty_page.page.parent
    assert load(folder.parent / "runs.db").checksum in text
    command = shlex.join(["tstar", "report", str(folder.parent / "runs.db"), "--metric", "test"])
    assert html.escape(command, quote=False).replace("'", "&#39;") in text
    assert "prefers-color-scheme: dark" in text
    assert len(re.findall(r'<figure id="fig-([\w-]+)">', text)) == 6
    assert len([*(folder / "figures").glob("*.svg")]) == 6
    assert [table.name for table in nasty_page.tables] == ["advice", "datasets", "conditions"]
    for kind in ("tex", "md", "csv"):
        assert (folder / "tables" / f"conditions.{kind}").exists()


def test_values_are_listed_in_order_until_they_are_too_many():
    assert values(pd.Series([64, 8, None, 64])) == "8, 64"
    assert values(pd.Series(["b", "a\x07"])) == "a\\x07, b"
    assert values(pd.Series(range(13))) == "13 values, 0 to 12"


def test_the_facts_are_those_of_the_store(records):
    pairs = dict(facts(records))
    runs = len(records.frame)
    assert pairs["runs"] == f"{runs:,} ({runs:,} done)"
    assert pairs["seed"] == "0, 1, 2"
    assert pairs["lr"] == "0.1"  # though it is the default
    assert "loss" not in pairs  # the default
    words = dict(origin(records, "tstar report runs.db"))
    assert words["command"] == "tstar report runs.db"
    assert records.checksum in words["store"]
    assert words["runs: torch"] == "2.9"


def test_a_loss_metric_or_augmentation_of_one_s_own_is_named(make_store):
    own = {"loss": "./kit.py:focal", "metric": "./kit.py:top3", "augment": "./kit.py:noise"}

    def change(rows):
        return [(replace(spec, **own, source="a" * 16), result) for spec, result in rows]

    pairs = dict(facts(load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change))))
    assert [pairs[name] for name in own] == [part.rpartition(":")[2] for part in own.values()]


def test_every_field_that_is_not_the_default_is_named(make_store):
    """Also one without a label of its own: it goes by its name."""

    def change(rows):
        return [(replace(spec, test_curve=True), result) for spec, result in rows]

    pairs = dict(facts(load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change))))
    assert pairs["test curve"] == "1"
