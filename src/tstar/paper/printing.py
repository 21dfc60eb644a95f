"""The tables at the prompt, in the paper's layout: best in bold, second best underlined."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tstar.curves.reading import Metric
from tstar.paper.catalogue import METHODS, Spec, spec
from tstar.paper.loading import marks, printed, table
from tstar.paper.own_runs import ROWS, described, mark, task_rows, yours

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

    The two stand one below the other: what was trained differs, and the second says in what (size, samples,
    length). ``plain`` writes the marks as **best** and _second_, for output without bold and underline.
    """
    kind = spec(name)
    paper, signs = printed(name), marks(name)
    if runs is None:
        return [_table(kind, paper, signs, f"{kind.caption} (the paper)", plain)]
    own = yours(name, runs, metric=metric)
    signs_own = mark(own, name) if kind.marked else own.map(lambda _: "")
    title = f"The same from your runs ({metric} accuracy" + (
        "; ~ interpolated)" if kind.marked else ")"
    )
    return [
        _table(kind, paper, signs, f"{kind.caption} (the paper)", plain),
        _table(kind, _text(kind, own), signs_own, title, plain, own if kind.marked else None),
    ]


def _table(
    kind: Spec,
    texts: pd.DataFrame,
    signs: pd.DataFrame,
    caption: str,
    plain: bool,
    own: pd.DataFrame | None = None,
) -> Table:
    """``own`` is the frame of own runs: its rows have other names, and say what they stand on."""
    shown = Table(title=caption, title_justify="left", pad_edge=False)
    labels = [key for key in kind.keys if key != kind.block]
    columns = [c for c in texts.columns if c not in kind.keys]
    names = METHODS if own is None else ROWS
    for column in (*labels, *columns):
        text = column in labels or kind.name in ("characteristics", "footnotes")
        header = Text(_HEADERS.get(column, column))
        shown.add_column(header, justify="left" if text else "right", no_wrap=column in labels)
    for label, quantity in _headers(kind, columns, own).items():
        shown.add_row(
            *[label, *[""] * (len(labels) - 1)],
            *[quantity.get(column, "") for column in columns],
            style="dim",
        )
    for block, part in texts.groupby(kind.block, sort=False) if kind.block else [("", texts)]:
        shared, rows = described(own, str(block)) if own is not None else ("", {})
        if kind.block or shared:
            shown.add_section()
            shown.add_row(Text(" · ".join(filter(None, (str(block), shared))), style="bold"))
        for index, line in part.iterrows():
            shown.add_row(
                *(Text(names.get(line[k], line[k]) if k == "method" else line[k]) for k in labels),
                *(_marked(line[c], str(signs.loc[index, c]), plain) for c in columns),
            )
        for label, quantity in rows.items():
            shown.add_row(
                *[label, *[""] * (len(labels) - 1)],
                *[quantity.get(column, "") for column in columns],
                style="dim",
            )
    return shown


def _headers(
    kind: Spec, columns: Sequence[str], own: pd.DataFrame | None
) -> dict[str, dict[str, str]]:
    """The rows CSG and CN that head tables over data sets: the paper's, or of the own runs."""
    if own is not None:
        return task_rows(own)
    if kind.name not in _WITH_TASKS or not set(kind.values) <= set(columns):
        return {}
    tasks = table("tasks").set_index("dataset")
    return {
        "CSG": {c: f"{tasks.loc[c, 'csg']:.2f}" for c in kind.values},
        "CN": {c: f"{tasks.loc[c, 'num_classes']:g}" for c in kind.values},
    }


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
