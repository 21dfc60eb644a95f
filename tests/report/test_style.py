"""Pictures: formats, and names that stay text."""

import re

import pytest

from tstar import TstarError
from tstar.report.catalogue import get_figure
from tstar.report.records import load
from tstar.report.style import save, svg_text


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
    svg = svg_text(plot.draw(plot.data(load(store))))
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert re.search(r"<text[^>]*>[^<]*\$x_1\$", svg)  # not set as a formula
