"""A figure as the page lays it out: one SVG per panel and legend entry, so that panels reflow on a phone.

The figure is drawn once, as for the folder; its SVG is then cut at the boxes of its panels. Titles that panels share and
the names of the axes become text of the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tstar.report.style import FAINT, INK, look, svg_text
from tstar.text import escaped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    # Left, bottom, right, top, in points from the lower left.
    Box = tuple[float, float, float, float]

_SVG = "{http://www.w3.org/2000/svg}"
_MARGIN = 1.5  # points around a piece
ElementTree.register_namespace("", _SVG[1:-1])
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def cut(figure: Figure) -> tuple[str, str]:
    """A figure as SVG, and as HTML made of its pieces. matplotlib escapes the names in it; labels are escaped here."""
    _name(figure)
    svg = svg_text(figure)
    # Legends stand where they were drawn last, in the SVG's dots: 72 per inch, a point each.
    dots, figure.dpi = figure.dpi, 72
    with look():  # matplotlib chooses ticks by its settings of the moment
        html = _pieces(figure, svg)
    figure.dpi = dots
    return svg, html


def _name(figure: Figure) -> None:
    """Give panels and legend entries the names by which they are found in the SVG."""
    for i, axes in enumerate(figure.axes):
        axes.set_gid(f"panel-{i}")
    for i, (mark, word) in enumerate(_entries(figure)):
        mark.set_gid(f"mark-{i}")
        word.set_gid(f"word-{i}")


def _entries(figure: Figure) -> list[tuple[Any, Any]]:
    """Mark and word of everything in the figure's legends."""
    return [
        pair
        for legend in figure.legends
        for pair in zip(legend.legend_handles, legend.get_texts(), strict=True)
    ]


def _pieces(figure: Figure, svg: str) -> str:
    tree = ElementTree.fromstring(svg)
    groups = {g.get("id"): g for g in tree.iter(f"{_SVG}g")}
    shared = list(tree.findall(f"{_SVG}defs"))  # of all panels; the first one carries them
    height = 72 * figure.get_figheight()
    panels, bars = _sorted_axes(figure)
    boxes = _panel_boxes([axes for _, axes in panels])
    drawn: list[str] = []
    for (i, axes), box in zip(panels, boxes, strict=True):
        parts = [*shared, groups[f"panel-{i}"]] if not drawn else [groups[f"panel-{i}"]]
        drawn.append(_piece(parts, box, height, axes.get_title() or figure.get_suptitle()))
    legend = []
    for i, (mark, word) in enumerate(_entries(figure)):
        box = _union([_box(mark), _box(word)])
        parts = [groups[f"mark-{i}"], groups[f"word-{i}"]]
        legend.append(_piece(parts, box, height, word.get_text(), fixed=True))
    for i, axes in bars:
        legend.append(_piece([groups[f"panel-{i}"]], _box(axes), height, "colors", fixed=True))
    width = (boxes[0][2] - boxes[0][0]) * 4 / 3
    about = "".join(f"<p>{escaped(text)}</p>" for text in _about(figure))
    return (
        f'<div class="picture" style="--panel: {width:.0f}px">{about}'
        + (f'<div class="legend">{"".join(legend)}</div>' if legend else "")
        + f'<div class="panels">{"".join(drawn)}</div></div>'
    )


def _sorted_axes(figure: Figure) -> tuple[list[tuple[int, Axes]], list[tuple[int, Axes]]]:
    """Panels with something in them, and color bars, each with its number in the figure."""
    every = [(i, axes) for i, axes in enumerate(figure.axes) if axes.axison or axes.has_data()]
    bars = [(i, axes) for i, axes in every if axes.get_label() == "<colorbar>"]
    return [pair for pair in every if pair not in bars], bars


def _about(figure: Figure) -> list[str]:
    """What stands around the panels: the shared title, and what the axes show."""
    titles = [figure.get_suptitle(), *(x.get_title().get_text() for x in figure.legends)]
    names = ("↑", figure.get_supylabel()), ("→", figure.get_supxlabel())
    axes = "\N{EM SPACE}".join(f"{arrow} {name}" for arrow, name in names if name)
    return [text.replace(r"\$", "$").replace("\n", " ") for text in (*titles, axes) if text]


def _panel_boxes(panels: Sequence[Axes]) -> list[Box]:
    """Boxes of one size: around each panel the most that any needs for its title and ticks."""
    frames = [_extents(axes.get_window_extent()) for axes in panels]
    whole = [_box(axes) for axes in panels]
    before = [max(f[k] - w[k] for f, w in zip(frames, whole, strict=True)) for k in (0, 1)]
    after = [max(w[k] - f[k] for f, w in zip(frames, whole, strict=True)) for k in (2, 3)]
    return [(f[0] - before[0], f[1] - before[1], f[2] + after[0], f[3] + after[1]) for f in frames]


def _box(artist: Any) -> Box:
    return _extents(artist.get_tightbbox())


def _extents(box: Any) -> Box:
    left, low, right, high = map(float, box.extents)
    return left, low, right, high


def _union(boxes: Sequence[Box]) -> Box:
    left, low, right, high = zip(*boxes, strict=True)
    return min(left), min(low), max(right), max(high)


def _piece(
    parts: Sequence[ElementTree.Element], box: Box, height: float, label: str, fixed: bool = False
) -> str:
    """Some groups of the figure's SVG, seen through a box; ``fixed``: at its own size."""
    left, low, right, high = (
        edge + _MARGIN * sign for edge, sign in zip(box, (-1, -1, 1, 1), strict=True)
    )
    view = f"{left:.1f} {height - high:.1f} {right - left:.1f} {high - low:.1f}"
    size = f' width="{(right - left) * 4 / 3:.0f}"' if fixed else ""
    for part in parts:
        for group in part.iter(f"{_SVG}g"):
            group.attrib.pop("id", None)  # the same in every figure of the page, and not needed
    content = "".join(ElementTree.tostring(part, encoding="unicode") for part in parts)
    content = re.sub(r' xmlns(:\w+)?="[^"]*"', "", content)  # in HTML they are known
    content = re.sub(r'(<path [^>]*style="fill: )#ffffff', r"\1none", content)
    content = content.replace(INK, "currentColor").replace(FAINT, "var(--grid)")
    # matplotlib names its own font; the page's is there for certain.
    content = re.sub(r"font-family: [^;\"]*", "font-family: var(--figure-font)", content)
    content = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px var(--figure-font)", content)
    name = escaped(label.replace(r"\$", "$").replace("\n", ", "))
    return f'<svg role="img" aria-label="{name}" viewBox="{view}"{size}>{content}</svg>'
