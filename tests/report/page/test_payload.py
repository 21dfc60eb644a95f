"""Runs and curves as a page holds them: they come back whole."""

import base64
import json
import zlib

import numpy as np
import pytest

from tstar.report.page.payload import (
    MISSING,
    curves_payload,
    packed,
    quantize,
    runs_payload,
    thinned,
)
from tstar.report.records import load


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
