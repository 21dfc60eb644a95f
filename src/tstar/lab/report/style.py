"""How every figure looks: colors for all eyes, lines that differ in print, reproducible files."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import pandas as pd

from tstar.errors import unknown
from tstar.text import escaped, printable

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (2008): told apart by all common kinds of color vision. The order puts
# hues of different lightness next to each other, and each goes with a line and a marker of its own.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY)
LINES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
# Two grays that no figure uses otherwise: the page puts its own colors in their place.
INK, FAINT = "#1b1c1d", "#c7c8c9"
FORMATS = ("svg", "pdf", "png")
Parameters = ParamSpec("Parameters")
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor")
_RC = {
    **{"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8},
    **{"xtick.labelsize": 8, "ytick.labelsize": 8, "grid.linewidth": 0.6},
    **dict.fromkeys((*_INKED, "xtick.color", "ytick.color"), INK),
    **{"grid.color": FAINT, "legend.frameon": False},
    **{"axes.spines.top": False, "axes.spines.right": False},
    **{"svg.hashsalt": "tstar", "pdf.fonttype": 42},
}


@contextmanager
def look() -> Iterator[None]:
    """Our settings of matplotlib for a while; the user's come back."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Make a drawing function draw in our style."""

    @wraps(draw)
    def drawn(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Figure:
        with look():
            figure = draw(*arguments, **keywords)
            # Places are found once: every later save would find them again.
            figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
            figure.set_layout_engine(None)
            return figure

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own, in inches, apart from pyplot's global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Figure_

    figure = Figure_(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def drawn_panels(
    frame: pd.DataFrame, **size: Any
) -> tuple[Figure, list[Any], list[str], list[pd.DataFrame]]:
    """A figure for the panels of a frame: its axes, and the name and rows of each panel."""
    found = {str(name): part for name, part in frame.groupby("panel", sort=False)}
    figure, every = panels(len(found), places=places(frame), **size)
    return figure, every, [*found], [*found.values()]


def places(frame: pd.DataFrame, most: int = 4) -> list[tuple[int, int]] | None:
    """Row and column of each panel, if those that the frame names fill most of a grid."""
    if not {"row", "column"} <= {*frame.columns}:
        return None
    each = frame.drop_duplicates("panel")
    rows, columns = (each[name].factorize()[0].tolist() for name in ("row", "column"))
    found = [*zip(rows, columns, strict=True)]
    across, room = max(columns) + 1, (max(rows) + 1) * (max(columns) + 1)
    return found if 1 < across <= most and len({*found}) == len(each) >= 0.75 * room else None


def panels(
    count: int,
    *,
    columns: int = 4,
    width: float = 2.4,
    height: float = 2.1,
    places: Sequence[tuple[int, int]] | None = None,
) -> tuple[Figure, list[Any]]:
    """A figure with ``count`` panels, at their places or in turn, and the list of its axes."""
    if places is None:
        across = min(columns, count)
        places = [divmod(number, across) for number in range(count)]
    down, across = (max(place) + 1 for place in zip(*places, strict=True))
    # Not narrower than what a legend and two words of title need.
    figure = new_figure(max(width * across + 0.5, 3.8), height * down + 0.55)
    axes = figure.subplots(down, across, squeeze=False)
    for place in {*np.ndindex(down, across)} - {*places}:
        axes[place].remove()
    return figure, [axes[place] for place in places]


def tick(T: float) -> str:
    """A temperature on an axis, short and exact: 1.41, and 1/32 for long decimals.

    >>> tick(64.0), tick(2**0.5), tick(0.03125), tick(0.25), tick(math.inf)
    ('64', '1.41', '1/32', '0.25', 'best')
    """
    if math.isinf(T):
        return "best"
    return f"1/{1 / T:.0f}" if 1 / T >= 16 and (1 / T).is_integer() else f"{T:.3g}"


def powers_of_two(axes: Axes, values: Sequence[float], names: Sequence[str]) -> None:
    """An axis of T or M: logarithmic, with these ticks alone, and lines across."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, names)
    axes.minorticks_off()
    axes.grid(axis="y")


def literal(text: object) -> str:
    """Text as it is: a dollar sign in a name is no formula, and nothing hidden is obeyed."""
    return printable(text, lines=True).replace("$", r"\$")


def short(text: str, most: int = 34) -> str:
    """A title that fits a panel; the middle goes, since names differ at both ends."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def told_apart(titles: Sequence[str], width: int = 34) -> tuple[str, list[str]]:
    """What all panels share, for the figure's title; and what tells each apart, in short lines.

    >>> told_apart(["a · net · lr 0.1", "a · net · lr 0.01"])
    ('a · net', ['lr 0.1', 'lr 0.01'])
    """
    parts = [[part for part in re.split(r" · |, |\n", title) if part] for title in titles]
    alike = [part for part in parts[0] if all(part in other for other in parts)]
    shared = alike if len(parts) > 1 else []
    # A number stays with its word: no-break spaces inside a part.
    rests = [
        " · ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in own if part not in shared)
        for own in parts
    ]
    wrapped = [textwrap.wrap(rest, width, break_on_hyphens=False) for rest in rests]
    found = ["\n".join(line.strip(" ·") for line in own) for own in wrapped]
    return " · ".join(shared), [text.replace("\N{NO-BREAK SPACE}", " ") for text in found]


def color_bar(figure: Figure, image: Any, every: Any, label: str) -> None:
    """What the colors mean, above the panels."""
    figure.colorbar(image, ax=every, label=label, location="top", shrink=0.5, aspect=30, pad=0.02)


def finish(
    figure: Figure,
    every: Sequence[Axes],
    titles: Sequence[str],
    axes: tuple[str, str],
    legend: Sequence[Mapping[str, Any]] = (),
    width: int = 34,
) -> None:
    """What stands around the panels: names of the two axes, a legend of lines above, and titles."""
    from matplotlib.lines import Line2D

    figure.supxlabel(axes[0], fontsize=9)
    figure.supylabel(axes[1], fontsize=9)
    shared, rests = told_apart(titles, width)
    for one, rest in zip(every, rests, strict=True):
        one.set_title(literal(rest), fontsize=8)
    above = literal("\n".join(textwrap.wrap(shared, 90)))
    if legend:
        handles = [Line2D([], [], **line) for line in legend]
        columns = len(handles) if figure.get_figwidth() > 5 else 2
        figure.legend(handles=handles, loc="outside upper center", ncols=columns, title=above)
    elif shared:
        figure.suptitle(above, fontsize=9)


def format_of(path: str | Path) -> str:
    """The format that a figure's file name asks for: asked before long work."""
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise unknown("format of a figure", kind or target.name, FORMATS)
    return kind


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as ``.svg``, ``.pdf`` or ``.png``; the same figure gives the same bytes."""
    target = Path(path)
    dates = {"svg": "Date", "pdf": "CreationDate", "png": "Software"}
    nothing = {dates[format_of(target)]: None}
    target.parent.mkdir(parents=True, exist_ok=True)
    with look():
        figure.savefig(target, dpi=200, metadata=nothing)
    return target


def svg_text(figure: Figure) -> str:
    """The figure as SVG, with text as text; the same figure gives the same bytes."""
    import matplotlib

    buffer = io.StringIO()
    with look():
        matplotlib.rcParams["svg.fonttype"] = "none"
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    return buffer.getvalue()


def inline_svg(figure: Figure, label: str) -> Markup:
    """The figure for a page: its colors and letters are the page's, and follow dark mode."""
    from markupsafe import Markup

    svg = svg_text(figure).replace(INK, "currentColor").replace(FAINT, "var(--grid)")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    head, _, content = svg.partition(">")
    box = re.findall(r'viewBox="[^"]*"', head)[0]
    style = f'style="max-width: {figure.get_figwidth() * 96:.0f}px"'
    return Markup(f'<svg role="img" aria-label="{escaped(label)}" {box} {style}>{content}')
