"""The page and its folder: one file, nothing from outside, names as text; and live."""

import base64
import html
import json
import math
import os
import re
import shlex
import zlib

import pandas as pd
import pytest

from tests.lab.report.planted import TASKS, planted, write
from tstar import TstarError
from tstar.lab.report.page import facts, origin, values
from tstar.lab.report.payload import curves_payload, packed, runs_payload
from tstar.lab.report.records import load
from tstar.lab.report.write import write_report

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
    assert len(re.findall(r"<script\b", text)) == 3  # ours: two of data, one of code
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{title}} $x$" in text  # a placeholder in a name is text as well


def test_the_page_says_what_it_must(nasty_page):
    text = nasty_page.page.read_text(encoding="utf-8")
    folder = nasty_page.page.parent
    assert load(folder.parent / "runs.db").checksum in text
    command = shlex.join(["tstar", "report", str(folder.parent / "runs.db"), "--metric", "test"])
    assert html.escape(command, quote=False).replace("'", "&#39;") in text
    assert "prefers-color-scheme: dark" in text
    assert "As above" not in text
    assert len(re.findall(r'<figure id="fig-([\w-]+)">', text)) == 6
    assert '<p class="shared">resnet10 · sgd · lr 0.1 · 6 epochs</p>' in text
    about = json.loads(json.dumps(nasty_page.to_dict()))
    assert all(os.path.exists(name) for name in about["figures"])
    assert len(about["headline"]["lines"]) == 3
    for kind in ("tex", "md", "csv"):
        assert (folder / "tables" / f"conditions.{kind}").exists()


def test_what_is_not_allowed_is_refused_before_anything_is_made(store, tmp_path):
    with pytest.raises(TstarError, match="format of a figure 'jpg'"):
        write_report(store, tmp_path / "out", formats=("jpg",))
    assert not (tmp_path / "out").exists()


def test_values_are_listed_in_order_until_they_are_too_many():
    assert values(pd.Series([64, 8, None, 64])) == "8, 64"
    assert values(pd.Series(["b", "a\x07"])) == "a\\x07, b"
    assert values(pd.Series(range(13))) == "13 values, 0 to 12"


def test_the_facts_are_those_of_the_store(records):
    said = dict(facts(records))
    runs = len(records.frame)
    assert said["runs"] == f"{runs:,} ({runs:,} done)"
    assert said["seeds"] == "0, 1, 2"
    assert said["training time"] == f"{1.5 * runs / 60:.1f} minutes"
    assert "losses" not in said  # the usual one
    told = dict(origin(records, "tstar report runs.db"))
    assert told["command"] == "tstar report runs.db"
    assert records.checksum in told["store"]
    assert told["runs: torch"] == "2.9"


def test_a_loss_metric_or_augmentation_of_one_s_own_is_named(make_store):
    from dataclasses import replace

    own = {"loss": "./kit.py:focal", "metric": "./kit.py:top3", "augment": "./kit.py:noise"}

    def change(rows):
        return [(replace(spec, **own, source="a" * 16), result) for spec, result in rows]

    said = dict(facts(load(make_store(tasks=TASKS[:1], widths=(64,), seeds=1, change=change))))
    named = [said[name] for name in ("losses", "metric", "augmentation")]
    assert named == [part.rpartition(":")[2] for part in own.values()]


def test_curves_come_back_and_long_ones_are_thinned():
    texts = [
        json.dumps({"train_loss": [2.0, 1.0, 0.25], "val_accuracy": [0.1, 0.7, 0.9]}),
        None,
        json.dumps({"train_loss": [1.0, None, 3.0], "epoch": [1, 5, 10]}),
        "not json",
        json.dumps({"train_loss": [float(i) for i in range(1000)]}),
    ]
    found = curves_payload(texts)
    assert found[0]["train_loss"] == [[1, 2, 3], [2.0, 1.0, 0.25], 3]
    assert (found[1], found[3]) == ({}, {})
    assert found[2]["train_loss"] == [[1, 5, 10], [1.0, None, 3.0], 3]
    epochs, steps, total = found[4]["train_loss"]
    assert (len(steps), total) == (200, 1000)
    assert (epochs[0], epochs[-1], steps[0], steps[-1]) == (1, 1000, 0.0, 999.0)


@pytest.mark.parametrize(
    ("stored", "drawn"),
    [
        ('{"train_loss": [1.0, Infinity, -Infinity, NaN]}', [[1, 2, 3, 4], [1.0, None, None, None], 4]),
        ('{"train_loss": [1.0, "x", [2], {}]}', [[1, 2, 3, 4], [1.0, None, None, None], 4]),
        ('{"train_loss": [1.0, 2.0], "epoch": [5]}', [[1, 2], [1.0, 2.0], 2]),
        ('{"train_loss": [1.0, 2.0], "epoch": "ab"}', [[1, 2], [1.0, 2.0], 2]),
        ('{"train_loss": {"1": 2.0}}', None),
        ('{"train_loss": "diverged"}', None),
        ('{"train_loss": 7}', None),
        ('[1, 2]', None),
    ],
)  # fmt: skip
def test_a_curve_of_another_shape_is_drawn_as_far_as_it_is_one(stored, drawn):
    (curves,) = curves_payload([stored])
    assert curves.get("train_loss") == drawn
    json.loads(zlib.decompress(base64.b64decode(packed(curves))), parse_constant=pytest.fail)


def test_a_name_with_nan_in_it_stays_and_a_number_that_is_none_is_null(make_store):
    def change(rows):
        return [(spec, result | {"nll": math.inf, "ece": math.nan}) for spec, result in rows]

    store = make_store(tasks=(("NaNet-NaN", 2.0, 10),), widths=(64,), seeds=2, change=change)
    text = zlib.decompress(base64.b64decode(packed(runs_payload(load(store).frame)))).decode()
    assert "NaNet-NaN" in text
    json.loads(text, parse_constant=pytest.fail)


def test_runs_come_back_and_what_is_the_same_is_told_once(store):
    frame = load(store).frame
    payload = runs_payload(frame)
    columns = {column["name"]: column for column in payload["columns"]}
    names = [columns["dataset"]["levels"][code] for code in columns["dataset"]["codes"]]
    assert names == frame["dataset"].tolist()
    assert columns["test_accuracy"]["values"] == pytest.approx(
        (100 * frame["test_accuracy"]).tolist(), rel=1e-5
    )
    assert payload["constant"]["lr"] == 0.1
    assert not set(payload["constant"]) & set(columns)
    unpacked = zlib.decompress(base64.b64decode(packed({"a": [1, "é"]})))
    assert json.loads(unpacked) == {"a": [1, "é"]}
