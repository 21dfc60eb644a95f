"""The tables at the prompt, in the paper's layout: best in bold, second best underlined."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tstar.curves.reading import Metric
from tstar.errors import require
from tstar.paper.catalogue import METHODS, Spec, spec
from tstar.paper.loading import marks, printed, table
from tstar.paper.own_runs import mark, yours

if TYPE_CHECKING:
    import pandas as pd

_STYLES = {"best": "bold", "second": "underline", "": ""}
_HEADERS = {
    "avg": "Avg.",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "alpha_bn": "α BN",
    "beta_bn": "β BN",
    "accuracy": "acc.",
    "accuracy_bn": "acc. BN",
    "gain": "Δ acc.",
}
_WITH_TASKS = ("corrections", "datasets")


def render(
    name: str,
    runs: pd.DataFrame | str | os.PathLike[str] | None = None,
    metric: Metric = "test",
    *,
    plain: bool = False,
) -> list[Table]:
    """The table ``name`` and, with ``runs``, the user's own next to it.

    A table of measured accuracies gains a column «yours» beside each column that the runs fill; a
    table of coefficients is followed by the same table fitted to the runs. ``plain`` writes the
    marks as **best** and _second_, for output without bold and underline.
    """
    kind = spec(name)
    paper, signs = printed(name), marks(name)
    if runs is None:
        return [_table(kind, paper, signs, f"{kind.caption} (the paper)", plain)]
    own = yours(name, runs, metric=metric)
    if not kind.marked:
        title = f"The same from your runs ({metric} accuracy)"
        return [
            _table(kind, paper, signs, f"{kind.caption} (the paper)", plain),
            _table(kind, _text(kind, own), own.map(lambda _: ""), title, plain),
        ]
    own_marks, texts = mark(own, name), _text(kind, own)
    # Blocks of the user's own follow the paper's rows, whose cells there stay empty.
    extra = own[list(kind.keys)].iloc[len(paper) :]
    paper = _below(paper, extra, "–")
    signs = _below(signs, extra, "")
    for column in [c for c in own.columns if c not in kind.keys and own[c].notna().any()]:
        here = list(paper.columns)
        before = column if column in here else kind.average or here[-1]
        place = here.index(before) + (1 if column in here else 0)
        paper.insert(place, f"yours: {column}", texts[column])
        signs.insert(place, f"yours: {column}", own_marks[column])
    title = f"{kind.caption} (the paper, and your {metric} accuracy; ~ interpolated)"
    return [_table(kind, paper, signs, title, plain)]


def _below(frame: pd.DataFrame, extra: pd.DataFrame, fill: str) -> pd.DataFrame:
    """``frame`` with the rows of ``extra`` below it, the columns that they lack filled."""
    pandas = require("pandas", "fit")
    return pandas.concat([frame, extra], ignore_index=True).fillna(fill)


def _table(
    kind: Spec, texts: pd.DataFrame, signs: pd.DataFrame, caption: str, plain: bool
) -> Table:
    shown = Table(title=caption, title_justify="left", pad_edge=False)
    labels = [key for key in kind.keys if key != kind.block]
    for column in (*labels, *(c for c in texts.columns if c not in kind.keys)):
        own = column.removeprefix("yours: ")
        header = _HEADERS.get(column, column)
        if own != column:
            header = "yours" if own in (*kind.values, kind.average) else f"yours: {own}"
        text = column in labels or kind.name in ("characteristics", "footnotes")
        style = "cyan" if own != column else ""
        shown.add_column(
            header, justify="left" if text else "right", style=style, no_wrap=column in labels
        )
    columns = [c for c in texts.columns if c not in kind.keys]
    for label, quantity in _headers(kind) if set(kind.values) <= set(columns) else []:
        shown.add_row(
            *[label, *[""] * (len(labels) - 1)],
            *[quantity.get(column, "") for column in columns],
            style="dim",
        )
    block = None
    for index, line in texts.iterrows():
        if kind.block and line[kind.block] != block:
            block = line[kind.block]
            shown.add_section()
            shown.add_row(Text(str(block), style="bold"))
        shown.add_row(
            *(
                METHODS.get(line[key], line[key]) if key == "method" else line[key]
                for key in labels
            ),
            *(_marked(line[c], str(signs.loc[index, c]), plain) for c in columns),
        )
    return shown


def _headers(kind: Spec) -> list[tuple[str, dict[str, str]]]:
    """The rows CSG and CN that head the paper's tables over data sets."""
    if kind.name not in _WITH_TASKS:
        return []
    tasks = table("tasks").set_index("dataset")
    return [
        ("CSG", {c: f"{tasks.loc[c, 'csg']:.2f}" for c in kind.values}),
        ("CN", {c: f"{tasks.loc[c, 'num_classes']:g}" for c in kind.values}),
    ]


def _marked(text: str, mark: str, plain: bool) -> Text:
    if plain and mark:
        return Text(f"**{text}**" if mark == "best" else f"_{text}_")
    return Text.assemble((text, _STYLES[mark]))  # a span: the padding stays unmarked


def _text(kind: Spec, frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers with the digits of the paper's table; a dash for what is missing."""
    digits = 4 if kind.name == "coefficients" else 2
    guessed = frame.attrs.get("interpolated", set())
    texts = frame.astype(object).copy()
    for column in frame.columns:
        if column not in kind.keys:
            texts[column] = [
                "–"
                if math.isnan(value)
                else f"{'~' * ((row, column) in guessed)}{value:.{digits}f}"
                for row, value in enumerate(frame[column])
            ]
    return texts
