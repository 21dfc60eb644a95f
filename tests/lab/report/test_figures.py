"""Figures as data, and their drawings: alike each time, without touching anything global."""

import json
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from tests.lab.report.planted import TASKS, rows
from tstar import TstarError
from tstar.lab.fitting.record import plain_rows
from tstar.lab.report.catalogue import FIGURES, get_figure
from tstar.lab.report.records import load
from tstar.lab.report.style import inline_svg, save, svg_text, told_apart


@pytest.mark.parametrize("name", [*FIGURES])
def test_every_figure_is_drawn_the_same_way_twice(records, tmp_path, name):
    before = dict(matplotlib.rcParams)
    plot = get_figure(name)
    frame = plot.data(records)
    json.dumps(plain_rows(frame), allow_nan=False)
    part = plot.parts(frame, per_part=2)[0]
    first = save(plot.draw(part), tmp_path / "a.svg").read_bytes()
    assert first == save(plot.draw(part), tmp_path / "b.svg").read_bytes()
    assert b"<svg" in first
    assert dict(matplotlib.rcParams) == before


def test_no_figure_uses_pyplot(store):
    code = (
        "import sys; from tstar.lab.report import FIGURES, load; records = load(sys.argv[1]);"
        "[plot.draw(plot.parts(plot.data(records), 1)[0]) for plot in FIGURES.values()];"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, store], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "False"


def test_many_panels_are_drawn_in_parts(records):
    plot = get_figure("accuracy")
    frame = plot.data(records)
    parts = plot.parts(frame, per_part=4)
    assert [part["panel"].nunique() for part in parts] == [4, 2]
    assert sum(map(len, parts)) == len(frame)
    assert all(part.attrs == frame.attrs for part in parts)


@pytest.mark.parametrize("name", [*FIGURES])
def test_a_figure_that_the_runs_do_not_allow_says_so(make_store, name):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match=r"^No (condition|runs|model)|needs"):
        get_figure(name).data(load(only))


def test_captions_stand_alone():
    for plot in FIGURES.values():
        assert not re.search(r"[Aa]s above|«|»|advised", plot.title + plot.reading), plot.name
    with pytest.raises(TstarError, match="did you mean 'heatmaps'"):
        get_figure("heatmap")


def test_boxes_are_the_quantiles_of_both_kinds(records):
    frame = get_figure("accuracy").data(records)
    assert set(frame["norm"]) == {"none", "batch"}
    assert frame["panel"].nunique() == 6  # one panel for both
    row = frame[(frame["norm"] == "none") & frame["panel"].str.startswith("easy")].iloc[0]
    values = 100 * np.array(
        rows(records, dataset="easy", num_features=64, norm="none", temperature=1.0)
    )
    assert row["mean"] == pytest.approx(values.mean())
    wanted = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    assert row[["low", "q1", "median", "q3", "high"]].tolist() == pytest.approx([*wanted])
    assert np.isnan(row["law"])  # it presupposes BN


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_a_store_of_one_kind_shows_it(make_store, norm):
    frame = get_figure("accuracy").data(load(make_store(tasks=TASKS[:1], norms=(norm,))))
    assert set(frame["norm"]) == {norm}


def test_a_cell_is_a_median_and_validation_frames_it(make_store):
    def change(rows):
        for spec, result in rows:
            if spec.temperature in (1.0, 2.0):
                result["val_accuracy"] = 0.99 - 0.01 * spec.temperature
        return rows

    records = load(make_store(tasks=TASKS[:1], change=change))
    plot = get_figure("heatmaps-bn")
    frame = plot.data(records)
    cell = frame[(frame["num_features"] == 256) & (frame["temperature"] == 8.0)].iloc[0]
    values = rows(records, num_features=256, norm="batch", temperature=8.0)
    assert cell["accuracy"] == pytest.approx(100 * np.median(values))
    for _, row in frame.groupby("num_features"):
        framed = row.set_index("temperature")["frame"]
        assert (framed[1.0], framed[2.0]) == ("best", "second")
        assert (framed != "").sum() == 2
    text = svg_text(plot.draw(frame))
    assert "numbers: test accuracy [%] · frames: best and second best T by validation" in text


def test_tasks_are_in_the_order_of_their_csg(records):
    frame = get_figure("difficulty").data(records)
    shown = [re.search(r"csg ([\d.]+)", name)[1] for name in dict.fromkeys(frame["panel"])]
    assert shown == ["1.5", "1.5", "6.7", "6.7", "25.5", "25.5"]
    assert frame.groupby("panel")["low"].nunique().max() == 1


def test_the_difference_is_over_the_seeds_of_both(records):
    frame = get_figure("bn-difference").data(records)
    plain, bn = (
        np.array(rows(records, dataset="hard", num_features=64, norm=norm, temperature=1.0))
        for norm in ("none", "batch")
    )
    wanted = 100 * (bn - plain)
    row = frame[
        frame["panel"].str.startswith("hard")
        & (frame["num_features"] == 64)
        & (frame["at"] == "T = 1")
    ].iloc[0]
    assert row["value"] == pytest.approx(wanted.mean())
    assert row["error"] == pytest.approx(wanted.std(ddof=1) / 3**0.5)


def test_a_point_is_the_law_against_the_oracle(records):
    frame = get_figure("recommended").data(records)
    assert len(frame) == 6
    for sweep, point in zip(records.judged(), frame.to_dict("records"), strict=True):
        assert (point["law"], point["best"]) == (sweep.law, sweep.ranking[0])
        assert point["regret"] == pytest.approx(sweep.judged(sweep.law).regret)


def test_names_stay_text_in_a_picture(make_store):
    name = "<script>alert(1)</script> & $x_1$"
    store = make_store(tasks=((name, 2.0, 10),), widths=(64,), seeds=1)
    plot = get_figure("heatmaps")
    figure = plot.draw(plot.data(load(store)))
    for svg in (svg_text(figure), inline_svg(figure, "label")):
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg
        assert re.search(r"<text[^>]*>[^<]*\$x_1\$", svg)  # not set as a formula


def test_a_picture_on_the_page_takes_the_page_s_colors(records):
    plot = get_figure("accuracy")
    svg = inline_svg(plot.draw(plot.parts(plot.data(records), 1)[0], legend=False), "label")
    assert "currentColor" in svg
    assert "#1b1c1d" not in svg
    assert "#ffffff" not in svg


def test_pictures_come_in_all_formats_and_no_other(records, tmp_path):
    plot = get_figure("recommended")
    figure = plot.draw(plot.data(records))
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert save(figure, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(TstarError, match="format of a figure 'jpg'"):
        save(figure, tmp_path / "a.jpg")


def test_what_panels_share_is_said_once():
    shared, rests = told_apart(["a · net\nM = 64", "b · net\nM = 64"])
    assert (shared, rests) == ("net · M = 64", ["a", "b"])
    assert told_apart(["a · net"]) == ("", ["a · net"])
