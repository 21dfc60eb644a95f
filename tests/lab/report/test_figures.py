"""Figures as data, and their drawings: alike each time, without touching anything global."""

import json
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch

from tests.lab.report.planted import TASKS, rows
from tstar import TstarError
from tstar.lab.cells import plain
from tstar.lab.report.catalogue import FIGURES, get_figure
from tstar.lab.report.records import load
from tstar.lab.report.style import inline_svg, save, svg_text


@pytest.mark.parametrize("name", [*FIGURES])
def test_every_figure_is_drawn_the_same_way_twice(records, tmp_path, name):
    before = dict(matplotlib.rcParams)
    plot = get_figure(name)
    frame = plot.frame(records)
    json.dumps(plain(frame.to_dict("records")), allow_nan=False)
    part = plot.parts(frame, panels=2)[0]
    first = save(plot.draw(part), tmp_path / "a.svg").read_bytes()
    assert first == save(plot.draw(part), tmp_path / "b.svg").read_bytes()
    assert b"<svg" in first
    assert dict(matplotlib.rcParams) == before


def test_no_figure_uses_pyplot(store):
    code = (
        "import sys; from tstar.lab.report import FIGURES, load; records = load(sys.argv[1]);"
        "[plot.draw(plot.parts(plot.frame(records), 1)[0]) for plot in FIGURES.values()];"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, store], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "False"


def test_many_panels_are_drawn_in_parts(records):
    plot = get_figure("accuracy")
    frame = plot.data(records)
    parts = plot.parts(frame, panels=4)
    assert [part["panel"].nunique() for part in parts] == [4, 2]
    assert sum(map(len, parts)) == len(frame)
    assert all(part.attrs == frame.attrs for part in parts)


@pytest.mark.parametrize("name", [name for name, plot in FIGURES.items() if plot.needs_runs])
def test_a_figure_that_the_runs_do_not_allow_says_so(make_store, name):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match=r"^No (condition|runs|model)"):
        get_figure(name).data(load(only))
    with pytest.raises(TstarError, match="needs a store"):
        get_figure(name).frame(None)


def test_every_figure_of_the_paper_has_a_name():
    numbers = [number for plot in FIGURES.values() for number in re.findall(r"\d+", plot.paper)]
    assert sorted(map(int, numbers)) == [*range(1, 12)]
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
    assert np.isnan(row["judged"])  # it presupposes BN


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_a_store_of_one_kind_shows_it_and_so_does_its_legend(make_store, norm):
    plot = get_figure("accuracy")
    frame = plot.data(load(make_store(tasks=TASKS[:1], norms=(norm,)), variant="cn"))
    assert set(frame["norm"]) == {norm}
    svg = svg_text(plot.draw(frame))
    assert ("mean, without BN" in svg) == (norm == "none")
    assert ("mean, with BN" in svg) == (norm == "batch")
    assert ("T*_cn" in svg) == (norm == "batch")


def test_what_is_shown_is_framed(make_store):
    """Not what validation chose, nor the means of the seeds beside their medians."""

    def change(rows):
        for spec, result in rows:
            if spec.temperature in (1.0, 2.0):
                result["val_accuracy"] = 0.99 - 0.01 * spec.temperature
            if spec.temperature == 64.0:  # the best mean, not the best median
                result["test_accuracy"] = (0.1, 0.91, 1.0)[spec.seed]
        return rows

    records = load(make_store(tasks=TASKS[:1], change=change))
    plot = get_figure("heatmaps-bn")
    frame = plot.data(records)
    cell = frame[(frame["num_features"] == 256) & (frame["temperature"] == 8.0)].iloc[0]
    values = rows(records, num_features=256, norm="batch", temperature=8.0)
    assert cell["value"] == pytest.approx(100 * np.median(values))
    for _, row in frame.groupby("num_features"):
        first, second = row.sort_values("value", ascending=False)["frame"].iloc[:2]
        assert (first, second) == ("best", "second")
        assert (row["frame"] != "").sum() == 2
    text = svg_text(plot.draw(frame))
    assert "median test accuracy [%] over seeds · framed: highest" in text


def test_tasks_are_in_the_order_of_their_csg(records):
    frame = get_figure("difficulty").data(records)
    shown = [
        re.search(r"csg ([\d.]+).* · (.*BN)", name).groups() for name in frame["panel"].unique()
    ]
    assert shown == [(csg, bn) for csg in ("1.5", "6.7", "25.5") for bn in ("no BN", "BN")]
    assert frame.groupby("scale")["low"].nunique().max() == 1  # colors within a task


def test_the_difference_is_over_the_seeds_of_both(make_store):
    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].seed > 0]

    records = load(make_store(change=change))
    frame = get_figure("bn-difference").data(records).set_index("num_features")
    hard = frame[frame["panel"].str.startswith("hard")].loc[64].set_index("temperature")["value"]
    for T in (1.0, 8.0):
        plain, bn = (
            np.array(rows(records, dataset="hard", num_features=64, norm=norm, temperature=T))
            for norm in ("none", "batch")
        )
        assert hard[T] == pytest.approx(np.median(100 * (bn[1:] - plain)))
    plain, bn = next(p for p in records.pairs() if "hard" in p[0].title)
    best = [s.curve.by_seed(s.best) for s in (plain, bn)]
    gains = [100 * (best[1][seed] - best[0][seed]) for seed in (1, 2)]
    assert hard[np.nan] == pytest.approx(np.median(gains))


def test_a_point_is_the_law_against_the_oracle(records):
    frame = get_figure("recommended").data(records)
    assert len(frame) == 6
    for sweep, point in zip(records.judged(), frame.to_dict("records"), strict=True):
        assert (point["judged"], point["best"]) == (sweep.law, sweep.best)
        means = sweep.curve.test.mean(axis=0)
        there = np.interp(np.log(sweep.law), np.log(sweep.temperatures), means)
        best = means[sweep.temperatures.index(sweep.best)]
        assert point["regret"] == pytest.approx(100 * (best - there))


def test_a_higher_temperature_flattens_the_softmax_and_keeps_its_order():
    frame = get_figure("softmax").data()
    largest = []
    for _, one in frame.groupby("temperature"):
        assert one["probability"].sum() == pytest.approx(1)
        assert (one.sort_values("logit")["probability"].diff().dropna() > 0).all()
        largest.append(one["probability"].max())
    assert largest == sorted(largest, reverse=True)


def test_smoothing_alone_makes_a_large_logit_cost():
    for (smoothing, T), one in get_figure("loss").data().groupby(["smoothing", "temperature"]):
        losses = one.sort_values("logit")["loss"].to_numpy()
        lowest = one["logit"].to_numpy()[losses.argmin()]
        if smoothing:  # the least loss is where softmax gives the target
            assert lowest == pytest.approx(min(30, T * np.log(91)), abs=0.13)
        else:
            assert (np.diff(losses) <= 0).all()
        torch_loss = torch.nn.functional.cross_entropy(
            torch.tensor([[4.0 / T] + [0.0] * 9]).double(),
            torch.tensor([0]),
            label_smoothing=smoothing,
        )
        assert np.interp(4.0, one["logit"], losses) == pytest.approx(torch_loss.item(), rel=1e-5)


def test_the_largest_probability_falls_with_the_classes():
    frame = get_figure("largest-probability").data()
    assert (frame["median"].diff().dropna() < 0).all()
    assert (frame["low"] > 1 / frame["classes"]).all()
    pair = frame.iloc[0]  # of two classes: the sigmoid of |x − y|, whose median is 0.674·√2
    assert pair["median"] == pytest.approx(1 / (1 + np.exp(-0.6745 * 2**0.5)), abs=0.01)


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
    svg = inline_svg(plot.draw(plot.parts(plot.data(records), 1)[0]), "label")
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
