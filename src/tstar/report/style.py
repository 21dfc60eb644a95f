"""How every figure looks: colors for all eyes, lines that differ in print, and saving without surprises."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tstar.errors import TstarError, require, unknown
from tstar.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (2008): told apart by all common kinds of color vision. The order puts
# hues of different lightness next to each other, and each goes with a line and a marker of its own.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY)
LINES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
# Two grays that no figure uses otherwise: the page puts its own text and grid colors in their place.
INK, FAINT = "#1b1c1d", "#c7c8c9"
FORMATS = ("svg", "pdf", "png")
Data = TypeVar("Data")
_RC = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "tstar",
    "pdf.fonttype": 42,
}


@contextmanager
def look() -> Iterator[None]:
    """Our settings of matplotlib for a while; the user's come back."""
    matplotlib = require("matplotlib", "plot")
    # Left-over settings of the user's would make figures differ from machine to machine.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def styled(draw: Callable[[Data], Figure]) -> Callable[[Data], Figure]:
    """Make a drawing function draw in our style."""

    @wraps(draw)
    def drawn(data: Data) -> Figure:
        with look():
            figure = draw(data)
            # Places are found once: every later save would find them again, which is most of its time.
            engine = figure.get_layout_engine()
            if engine is not None:
                engine.execute(figure)
            # None: with any engine left, saving draws the figure a second time.
            figure.set_layout_engine(None)
            return figure

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own, in inches, apart from pyplot's global state."""
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Figure_

    figure = Figure_(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(
    count: int, *, columns: int = 4, width: float = 2.4, height: float = 2.1
) -> tuple[Figure, list[Any]]:
    """A figure with ``count`` panels in rows of at most ``columns``, and its axes in a flat list."""
    across = min(columns, count)
    down = -(-count // across)
    # Not narrower than what a legend and two words of title need.
    figure = new_figure(max(width * across + 0.5, 4.2), height * down + 0.55)
    grid = figure.subplots(down, across, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def temperature_axis(axes: Axes, temperatures: Sequence[float]) -> None:
    """A logarithmic axis of T with its own grid as ticks, every so many where they would collide."""
    axes.set_xscale("log", base=2)
    step = -(-len(temperatures) // 6)
    shown = list(temperatures)[::step]
    axes.set_xticks(shown, [tick(T) for T in shown])
    axes.minorticks_off()


def tick(T: float) -> str:
    """A temperature on an axis, short and exact: 1.41, and 1/32 where decimals would be long.

    >>> tick(64.0), tick(2**0.5), tick(0.03125), tick(0.25)
    ('64', '1.41', '1/32', '0.25')
    """
    return f"1/{1 / T:.0f}" if 1 / T >= 16 and (1 / T).is_integer() else f"{T:.3g}"


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
    """What all panels of a figure share, for its title; and what tells each apart, in lines that fit a panel.

    >>> told_apart(["a · net · lr 0.1", "a · net · lr 0.01"])
    ('a · net', ['lr 0.1', 'lr 0.01'])
    """
    parts = [[part for part in re.split(r" · |, |\n", title) if part] for title in titles]
    shared = [part for part in parts[0] if all(part in other for other in parts)]
    if len(parts) == 1:
        shared = []
    # A number stays with its word: no-break spaces inside a part.
    rests = [
        [part.replace(" ", "\N{NO-BREAK SPACE}") for part in own if part not in shared]
        for own in parts
    ]
    lines = [textwrap.wrap(" · ".join(rest), width, break_on_hyphens=False) for rest in rests]
    found = ["\n".join(line.strip(" ·") for line in own) for own in lines]
    return " · ".join(shared), [text.replace("\N{NO-BREAK SPACE}", " ") for text in found]


def head(figure: Figure, every: Sequence[Axes], titles: Sequence[str], width: int = 34) -> None:
    """Titles of the panels; what they share goes above the figure. Called last, when the legend is there."""
    shared, rests = told_apart(titles, width)
    for axes, rest in zip(every, rests, strict=True):
        axes.set_title(literal(rest), fontsize=8)
    text = literal("\n".join(textwrap.wrap(shared, 90)))
    if shared and figure.legends:
        figure.legends[0].set_title(text)  # above the legend, not on it
        figure.legends[0].get_title().set_fontsize(9)
    elif shared:
        figure.suptitle(text, fontsize=9)


def error_bars(axes: Axes, x: Any, y: Any, error: Any, **line: Any) -> None:
    """A line with its standard errors, none where they are not known; ``line``: color, ls, marker."""
    spread = [0 if math.isnan(e) else e for e in error]
    axes.errorbar(x, y, yerr=spread, ms=4, capsize=2, **line)


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
    if legend:
        handles = [Line2D([], [], **look) for look in legend]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    head(figure, every, titles, width)


def format_of(path: str | Path) -> str:
    """The format that a figure's file name asks for: asked before long work, so that it is not lost to a typo."""
    target = Path(path)
    kind = target.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise unknown("format of a figure", kind or target.name, FORMATS)
    return kind


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as ``.svg``, ``.pdf`` or ``.png``; the same figure gives the same bytes."""
    target = Path(path)
    nothing: dict[str, Any] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
        "png": {"Software": None},
    }[format_of(target)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with look():
            figure.savefig(target, dpi=200, metadata=nothing)
    except OSError as error:
        raise TstarError(f"The figure {str(target)!r} could not be written: {error}.") from error
    return target


def svg_text(figure: Figure) -> str:
    """The figure as SVG, with text as text; the same figure gives the same bytes."""
    matplotlib = require("matplotlib", "plot")
    buffer = io.StringIO()
    with look():
        matplotlib.rcParams["svg.fonttype"] = "none"
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
