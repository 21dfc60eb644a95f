"""The catalogue of figures: every one is drawn, alike each time, without touching anything global."""

import json

import pytest

from tests.report.planted import TASKS
from tstar import TstarError
from tstar.report.catalogue import FIGURES, get_figure
from tstar.report.plain import plain_data
from tstar.report.records import load
from tstar.report.style import save


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
        data = data._replace(panels=data.panels[:2])
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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "False"


def test_many_panels_are_drawn_in_parts(records):
    plot = get_figure("accuracy")
    data = plot.data(records)
    many = data._replace(panels=data.panels * 5)
    parts = plot.parts(many)
    assert [len(part.panels) for part in parts] == [12, 12, 6]
    assert [p for part in parts for p in part.panels] == list(many.panels)


def test_many_tasks_are_drawn_in_parts(records):
    plot = get_figure("difficulty")
    data = plot.data(records)
    many = data._replace(panels=data.panels * 3)
    assert [len(part.panels) for part in plot.parts(many)] == [12, 6]
    assert plot.parts(data) == [data]


@pytest.mark.parametrize("name", [n for n, p in FIGURES.items() if p.needs_runs])
def test_a_figure_that_the_runs_do_not_allow_says_so(make_store, name):
    only = make_store(tasks=TASKS[:1], grid=(), methods=("default",), widths=(64,), seeds=1)
    with pytest.raises(TstarError, match=r"^No (condition|runs|model)|needs"):
        get_figure(name).data(load(only))
    with pytest.raises(TstarError, match="give a store"):
        get_figure(name).data(None)


def test_unknown_figures_are_named():
    with pytest.raises(TstarError, match="did you mean 'heatmaps'"):
        get_figure("heatmap")


def test_captions_use_the_words_of_the_page():
    for plot in FIGURES.values():
        text = plot.title + plot.reading
        assert not {"«", "»"} & set(text)
        assert "advised" not in text  # that is what recommend says, and more than a T
