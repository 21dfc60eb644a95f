"""Figures from runs: their data against sums done by hand, and that each can be drawn."""

import json
import math
import re
import statistics

import numpy as np
import pytest

from tstar import TstarError
from tstar.report.catalogue import FIGURES, get_figure
from tstar.report.figures.accuracy_boxes import accuracy_boxes_data
from tstar.report.figures.bn_difference import bn_difference_data
from tstar.report.figures.closed_forms import closed_forms_data
from tstar.report.figures.difficulty import difficulty_data
from tstar.report.figures.heatmaps import heatmaps_data
from tstar.report.figures.norm_sweep import norm_sweep_data
from tstar.report.figures.recommended import plateau, recommended_data
from tstar.report.plain import plain_data
from tstar.report.records import load
from tstar.report.style import inline_svg, save, svg_text

# As planted in conftest.
TASKS = (("easy", 1.5, 10), ("middle", 6.7, 10), ("hard", 25.5, 100))
GRID = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@pytest.fixture(scope="module")
def records(store):
    return load(store)


def rows(records, **wanted):
    """Test accuracies of the runs with these columns, straight from the store."""
    frame = records.frame
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    return frame["test_accuracy"].tolist()


def test_heatmaps_are_medians_and_frames_are_the_two_highest(records):
    data = heatmaps_data(records, "batch")
    assert [panel.title for panel in data.panels] == sorted(f"{t[0]} · resnet10" for t in TASKS)
    for panel in data.panels:
        dataset = panel.title.partition(" ")[0]
        for m, M in enumerate(panel.num_features):
            want = [
                statistics.median(
                    rows(records, dataset=dataset, num_features=M, norm="batch", temperature=T)
                )
                for T in GRID
            ]
            assert panel.accuracy[m] == pytest.approx(want)
            first, second = sorted(want, reverse=True)[:2]
            assert want[panel.best[m]] == first
            assert want[panel.second[m]] == second


def test_a_heatmap_leaves_a_gap_where_nothing_was_run(make_store):
    def gap(runs):
        return [r for r in runs if not (r[0].num_features == 64 and r[0].temperature == 64)]

    store = make_store(change=gap, tasks=TASKS[:1], seeds=1)
    panel = heatmaps_data(load(store), "none").panels[0]
    assert np.isnan(panel.accuracy).tolist() == [[False] * 6 + [True], [False] * 7]


def test_bn_difference_is_with_minus_without(records):
    data = bn_difference_data(records)
    panel = next(p for p in data.panels if p.title.startswith("hard"))
    for i, M in enumerate(panel.num_features):
        bn = rows(records, dataset="hard", num_features=M, norm="batch", temperature=1.0)
        plain = rows(records, dataset="hard", num_features=M, norm="none", temperature=1.0)
        assert panel.at_one[i].value == pytest.approx(
            100 * (statistics.mean(bn) - statistics.mean(plain))
        )
        paired = [b - p for b, p in zip(bn, plain, strict=True)]  # seed by seed
        error = statistics.stdev(paired) / math.sqrt(3)
        assert panel.at_one[i].error == pytest.approx(100 * error)
    # Planted: the peaks are equally high, and T = 1 is farther from the peak with BN.
    assert all(abs(d.value) < 2 for d in panel.at_best)
    assert all(d.value < -1.5 for d in panel.at_one)


def test_boxes_hold_the_seeds(records):
    data = accuracy_boxes_data(records)
    assert len(data.panels) == 6
    for panel in data.panels:
        assert [box.n for box in panel.boxes] == [3] * len(panel.temperatures)


def test_tasks_are_in_the_order_of_their_difficulty(records):
    data = difficulty_data(records)
    assert [task.dataset for task in data.tasks] == ["easy", "middle", "hard"]
    assert all(task.plain is not None and task.bn is not None for task in data.tasks)
    assert data.model == "resnet10"


def test_norm_sweep_keeps_the_two_sides_apart(records):
    panel = norm_sweep_data(records).panels[0]
    dataset = panel.title.partition(" ")[0]
    M = int(panel.title.rpartition("= ")[2])
    for line, norm in ((panel.plain, "none"), (panel.bn, "batch")):
        want = [
            statistics.mean(
                rows(records, dataset=dataset, num_features=M, norm=norm, temperature=T)
            )
            for T in GRID
        ]
        assert line.mean == pytest.approx(want)


def test_regret_is_best_minus_interpolated(records):
    data = recommended_data(records)
    assert len(data.points) == 6
    for point, sweep in zip(data.points, records.with_norm("batch"), strict=True):
        means = sweep.curve.means()
        interpolated = np.interp(np.log(sweep.recommended), np.log(GRID), means)
        assert point.best == GRID[int(np.argmax(sweep.curve.means("val")))]
        assert point.regret == pytest.approx(100 * (means[GRID.index(point.best)] - interpolated))
        assert point.low <= point.best <= point.high
    assert data.mean_regret == pytest.approx(np.mean([p.regret for p in data.points]))


def test_a_plateau_ends_where_the_accuracy_leaves_the_standard_error(make_store):
    def flat(runs):
        for spec, result in runs:
            # The best is in the middle, its neighbors less than its standard error, 0.0006, below.
            value = {4.0: 0.8, 8.0: 0.8003, 16.0: 0.8}.get(spec.temperature, 0.5)
            result["test_accuracy"] = result["val_accuracy"] = value + 0.001 * spec.seed
        return runs

    store = make_store(change=flat, tasks=TASKS[:1], widths=(64,), norms=("batch",))
    assert plateau(load(store).sweeps[0]) == (4.0, 16.0)


def test_rules_carry_the_best_temperatures_that_were_seen(records):
    data = closed_forms_data(records)
    assert len(data.panels) == len(TASKS)
    for panel in data.panels:
        assert {s.num_features for s in panel.seen} == {64, 256}
        assert {s.temperature for s in panel.seen} <= set(GRID)
    assert {p.num_classes for p in data.panels} == {10, 100}


@pytest.mark.parametrize("name", [*FIGURES])
def test_every_figure_is_drawn_the_same_way_twice_and_touches_no_global_state(
    records, tmp_path, name
):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot = get_figure(name)
    data = plot.data(records)
    json.dumps(plain_data(data), allow_nan=False)
    if plot.per_part:
        data = data._replace(**{plot.each: getattr(data, plot.each)[:2]})
    first = save(plot.draw(data), tmp_path / "a.svg").read_bytes()
    second = save(plot.draw(data), tmp_path / "b.svg").read_bytes()
    assert first == second
    assert b"<svg" in first
    assert dict(matplotlib.rcParams) == before


def test_no_figure_uses_pyplot(records):
    import subprocess
    import sys

    code = (
        "import sys; from tstar.report.catalogue import FIGURES; p = FIGURES['softmax'];"
        "p.draw(p.data(None)); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_pictures_come_in_all_formats_and_no_other(tmp_path):
    plot = get_figure("softmax")
    figure = plot.draw(plot.data(None))
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert save(figure, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(TstarError, match="format of a figure 'jpg'"):
        save(figure, tmp_path / "a.jpg")


def test_names_stay_text_in_a_picture(make_store):
    name = "<script>alert(1)</script> & $x_1$"
    store = make_store(tasks=((name, 2.0, 10),), widths=(64,), seeds=1)
    plot = get_figure("heatmaps")
    svg = inline_svg(svg_text(plot.draw(plot.data(load(store)))), "a <b>label</b>")
    assert "<script" not in svg
    assert "<b>" not in svg
    assert "&lt;script&gt;" in svg
    assert re.search(r"<text[^>]*>[^<]*\$x_1\$", svg)  # not set as a formula


def test_many_panels_are_drawn_in_parts(records):
    plot = get_figure("accuracy")
    data = plot.data(records)
    many = data._replace(panels=data.panels * 5)
    parts = plot.parts(many)
    assert [len(part.panels) for part in parts] == [12, 12, 6]
    assert [p for part in parts for p in part.panels] == list(many.panels)


def test_many_tasks_are_drawn_in_parts(records):
    """Whatever the field of panels is called."""
    plot = get_figure("difficulty")
    data = plot.data(records)
    many = data._replace(tasks=data.tasks * 3)
    assert [len(part.tasks) for part in plot.parts(many)] == [6, 3]
    assert plot.parts(data) == [data]


def test_a_report_draws_as_many_pictures_as_were_asked_for(make_store, tmp_path, monkeypatch):
    from tstar.report import write

    store = make_store(tasks=TASKS[:1], widths=tuple(range(8, 34)), norms=("batch",), seeds=1)
    monkeypatch.setattr(write, "FIGURES", {"accuracy": get_figure("accuracy")})
    for asked, drawn in ((1, 1), (2, 2), (0, 3)):
        made = write.write_report(
            store, tmp_path / str(asked), formats=("svg",), fits=False, pictures=asked
        )
        assert len(made.figures) == drawn
        page = made.page.read_text(encoding="utf-8")
        assert (f"The first {drawn} of 3 pictures" in page) == (drawn < 3)
    with pytest.raises(TstarError, match="pictures >= 0"):
        write.write_report(store, tmp_path / "no", pictures=-1)


@pytest.mark.parametrize("name", [n for n, p in FIGURES.items() if p.needs_runs])
def test_a_figure_that_the_runs_do_not_allow_says_so(make_store, name):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match=r"needs?|made from runs"):
        get_figure(name).data(load(only))
    with pytest.raises(TstarError, match="give a store"):
        get_figure(name).data(None)


def test_unknown_figures_are_named():
    with pytest.raises(TstarError, match="did you mean 'heatmaps'"):
        get_figure("heatmap")
