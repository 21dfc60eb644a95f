"""How every figure looks: colors for all eyes, lines that differ in print, reproducible files."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tstar.errors import unknown
from tstar.text import escaped, printable

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (2008): told apart by all common kinds of color vision. The order puts
# hues of different lightness next to each other, and each goes with a line and a marker of its own.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
COLORS = (BLUE, ORANGE, GREEN, "#CC79A7", VERMILION, "#56B4E9")
# Two grays that no figure uses otherwise: the page puts its own colors in their place.
INK, FAINT = "#1b1c1d", "#c7c8c9"
# Each format, with the field of its metadata that would make two files of one figure differ.
FORMATS = {"svg": "Date", "pdf": "CreationDate", "png": "Software"}
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor")
_RC = {
    **{"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8},
    **{"xtick.labelsize": 8, "ytick.labelsize": 8, "grid.linewidth": 0.6},
    **dict.fromkeys((*_INKED, "xtick.color", "ytick.color"), INK),
    **{"grid.color": FAINT, "legend.frameon": False, "axes.axisbelow": True},
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


def new_figure(width: float, height: float) -> Figure:
    """A figure of its own, in inches, apart from pyplot's global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_panels(
    frame: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], Any],
    labels: tuple[str, str],
    *,
    width: float,
    height: float,
    columns: int = 4,
    title_width: int = 34,
    legend: Sequence[Mapping[str, Any]] = (),
) -> Figure:
    """A figure in which ``draw(axes, rows)`` draws each panel of a frame.

    ``width`` and ``height`` are those of a panel, in inches; ``labels`` name the two axes. Above
    stand what all titles share, and the lines of the ``legend``.
    """
    from matplotlib.lines import Line2D

    parts = {str(name): part for name, part in frame.groupby("panel", sort=False)}
    across = min(columns, len(parts))
    down = math.ceil(len(parts) / across)
    # Not narrower than what a legend and two words of title need.
    figure = new_figure(max(width * across + 0.5, 3.8), height * down + 0.55)
    grid = figure.subplots(down, across, squeeze=False).ravel()
    shared, titles = told_apart([*parts], title_width)
    for axes, title, part in zip(grid, titles, parts.values(), strict=False):
        draw(axes, part)
        axes.set_title(literal(title), fontsize=8)
    for axes in grid[len(parts) :]:
        axes.remove()
    figure.supxlabel(labels[0], fontsize=9)
    figure.supylabel(labels[1], fontsize=9)
    above = literal("\n".join(textwrap.wrap(shared, 90)))
    if legend:
        handles = [Line2D([], [], **line) for line in legend]
        ncols = len(handles) if figure.get_figwidth() > 5 else 2
        figure.legend(handles=handles, loc="outside upper center", ncols=ncols, title=above)
    elif shared:
        figure.suptitle(above, fontsize=9)
    return figure


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


def quantiles(values: NDArray[np.float64], ends: float = 0.0) -> dict[str, float]:
    """What a box shows of values: median, quartiles, and the ends or a quantile near them."""
    found = np.quantile(values, [ends, 0.25, 0.5, 0.75, 1 - ends]).tolist()
    return dict(zip(("low", "q1", "median", "q3", "high"), found, strict=True))


def literal(text: object) -> str:
    """Text as it is: a dollar sign in a name is no formula, and nothing hidden is obeyed."""
    return printable(text, lines=True).replace("$", r"\$")


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
    metadata = {FORMATS[format_of(target)]: None}
    target.parent.mkdir(parents=True, exist_ok=True)
    with look():
        figure.savefig(target, dpi=200, metadata=metadata)
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
    # Where there is less room it shrinks a little, and then scrolls: its letters stay readable.
    wide = 96 * figure.get_figwidth()
    style = f'style="width: {wide:.0f}px; min-width: {0.8 * wide:.0f}px"'
    return Markup(f'<svg role="img" aria-label="{escaped(label)}" {box} {style}>{content}')
