"""The page: one file, nothing from outside, names as text, and runs and curves that come back whole."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from tstar import TstarError
from tstar.report.page.payload import (
    MISSING,
    curves_payload,
    packed,
    quantize,
    runs_payload,
    thinned,
)
from tstar.report.records import load
from tstar.report.write import write_report

NASTY = "<script>alert(1)</script>"


def read_curves(content):
    """The payload read by the description of its layout."""
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    at, found = 4 + length, {}
    for kind in head["kinds"]:
        parts = []
        for dtype in ("<u2", "<u2", "<f4", "<f4"):
            part = np.frombuffer(content, dtype, head["count"], at)
            at += part.nbytes
            parts.append(part)
        kept, total, low, high = parts
        steps = np.frombuffer(content, "<u2", int(kept.sum()), at)
        at += steps.nbytes
        starts = np.concatenate([[0], np.cumsum(kept)]).astype(int)
        curves = [steps[starts[i] : starts[i + 1]] for i in range(head["count"])]
        found[kind] = [
            (n, lo + (hi - lo) * curve.astype(float) / (MISSING - 1), curve == MISSING)
            for n, lo, hi, curve in zip(total, low, high, curves, strict=True)
        ]
    assert at == len(content)
    return found


def test_curves_come_back_whole():
    texts = [
        json.dumps({"train_loss": [2.0, 1.0, 0.25], "val_accuracy": [0.1, 0.7, 0.9]}),
        None,
        json.dumps({"train_loss": [1.0, None, 3.0]}),
        "not json",
        json.dumps({"train_loss": [0.5]}),
    ]
    found = read_curves(curves_payload(texts))
    assert set(found) == {"train_loss", "val_accuracy"}
    assert found["train_loss"][0][1] == pytest.approx([2.0, 1.0, 0.25], abs=1e-4)
    assert found["val_accuracy"][0][1] == pytest.approx([0.1, 0.7, 0.9], abs=1e-4)
    assert len(found["train_loss"][1][1]) == 0
    assert found["train_loss"][2][2].tolist() == [False, True, False]
    assert found["train_loss"][4][1] == pytest.approx([0.5])


def test_quantizing_is_finer_than_a_screen():
    values = np.random.default_rng(0).uniform(-3, 7, 500)
    steps, low, high = quantize(values)
    back = low + (high - low) * steps / (MISSING - 1)
    assert np.abs(back - values).max() <= (high - low) / (MISSING - 1)


@pytest.mark.parametrize(("length", "room"), [(5, 8), (8, 8), (200, 8), (201, 50), (1, 8), (0, 8)])
def test_thinning_keeps_the_ends_and_the_room(length, room):
    index = thinned(length, room)
    assert len(index) == min(length, room)
    if length:
        assert (index[0], index[-1]) == (0, length - 1)
        assert (np.diff(index) > 0).all()


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
    assert payload["count"] == len(frame)
    assert not set(payload["constant"]) & set(columns)


def test_packing_is_zlib_in_base64():
    assert zlib.decompress(base64.b64decode(packed(b"abc" * 50))) == b"abc" * 50


@pytest.fixture(scope="module")
def nasty_page(tmp_path_factory):
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    # The fixtures of conftest are per test; this page serves all tests of the module.
    spec = spec_from_file_location("planting", Path(__file__).with_name("conftest.py"))
    planting = module_from_spec(spec)
    spec.loader.exec_module(planting)
    folder = tmp_path_factory.mktemp("page")
    rows = planting.planted(
        tasks=((f"{NASTY} {{{{title}}}} $x$", 2.0, 10), ("other", 9.0, 10)),
        widths=(64,),
        seeds=2,
        grid=(1.0, 4.0, 16.0),
        methods=("insert-ln",),
    )
    store = planting.write(folder / "runs.db", rows, diverged=(1,))
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
    assert "tstar report runs.db --metric test" in text
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


def test_unknown_formats_are_refused_before_anything_is_made(store, tmp_path):
    with pytest.raises(TstarError, match="format of a figure 'jpg'"):
        write_report(store, tmp_path / "out", formats=("jpg",))
    assert not (tmp_path / "out").exists()
