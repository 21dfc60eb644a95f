"""A figure cut into panels: all of it is there, each panel whole, names as text."""

import re
from xml.etree import ElementTree

from tstar.report.catalogue import get_figure
from tstar.report.page.pieces import cut
from tstar.report.records import load


def texts(markup):
    return sorted("".join(t.itertext()).strip() for t in markup.iter() if t.tag.endswith("text"))


def drawn(store, name):
    plot = get_figure(name)
    data = plot.data(load(store))
    figure = plot.draw(data)
    dots = figure.dpi
    svg, html = cut(figure)
    assert figure.dpi == dots
    return data, svg, html


def test_every_text_of_the_figure_is_on_the_page(store):
    for name in ("accuracy", "heatmaps", "recommended", "rules"):
        data, svg, html = drawn(store, name)
        html = html.replace("xlink:", "")
        page = ElementTree.fromstring(html)
        panels = [d for d in page.iter("div") if d.get("class") == "panels"]
        assert len(panels[0]) == len(getattr(data, "panels", [data]))
        # Titles that panels share and the names of axes are text of the page; all else is cut, not lost.
        cut_texts, whole = (
            texts(panels[0]) + texts(page.find("div[@class='legend']")),
            texts(ElementTree.fromstring(svg)),
        )
        said = " ".join(p.text for p in page.iter("p"))
        assert [t for t in whole if t not in cut_texts and t not in said] == []
        assert sorted(cut_texts) == [t for t in whole if t in cut_texts]


def test_panels_of_a_figure_have_one_size(store):
    _, _, html = drawn(store, "accuracy")
    boxes = re.findall(r'viewBox="\S+ \S+ (\S+ \S+)"', html.partition('class="panels"')[2])
    assert len(boxes) == 6
    assert len(set(boxes)) == 1


def test_names_stay_text(make_store):
    name = "<script>alert(1)</script> & $x$"
    store = make_store(tasks=((name, 2.0, 10),), widths=(64, 128), seeds=1)
    _, _, html = drawn(store, "accuracy")
    assert "<script" not in html
    assert "alert(1)" in html
    assert r"\$" not in html


def test_groups_bear_no_names_that_other_figures_have(store):
    _, _, html = drawn(store, "heatmaps")
    assert not re.search(r'<g[^>]* id="', html)
