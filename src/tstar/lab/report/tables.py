"""A table is a DataFrame with a style; pandas writes it. Whatever is in a name stays text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tstar.lab.cells import disarmed
from tstar.lab.paper.catalogue import expected_marks
from tstar.lab.report.records import people
from tstar.text import escaped, printable

_DASH = "–"
_SYMBOLS = {
    **{"α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "Δ": r"\Delta"},
    **{"±": r"\pm", "·": r"\cdot", "√": r"\surd", "×": r"\times", "−": "-"},
}
_LATEX = str.maketrans({sign: f"${code}$" for sign, code in _SYMBOLS.items()} | {_DASH: "--"})
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]|"} | {"\n": " "})


@dataclass(frozen=True, eq=False)
class Table:
    """A table.

    Attributes:
        name: the name of its files. title: the line above it. note: how to read it.
        frame: numbers and texts, one column per column.
        digits: decimals of a column's numbers; others are written as people do, "18,000".
        marks: (row, column) → "best" or "second".
        signs: (row, column) → "~" before or "*" after.
        labels: how many of the first columns are text.
    """

    name: str
    title: str
    frame: pd.DataFrame
    note: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    signs: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    labels: int = 1

    def texts(self) -> pd.DataFrame:
        """Every cell as it is shown, without marks."""
        shown = self.frame.astype(object)
        for name in shown.columns:
            shown[name] = [_text(value, self.digits.get(name)) for value in shown[name]]
        for (row, name), sign in self.signs.items():
            text = shown.loc[row, name]
            shown.loc[row, name] = f"{sign}{text}" if sign == "~" else f"{text}{sign}"
        return shown.rename(columns=printable)

    def html(self) -> str:
        """A ``<table>`` of pandas, with the page's class for sorting."""
        style = self._style("font-weight: bold", "text-decoration: underline", "html")
        left, names = "text-align: left", [*style.columns]
        style = style.map(lambda _: left, subset=names[: self.labels])
        style = style.map_index(lambda name: left * (names.index(name) < self.labels), axis=1)
        made: str = style.set_uuid(self.name).set_table_attributes('class="sortable"').to_html()
        return made

    def latex(self) -> str:
        """A table of booktabs: bold best, underlined second."""
        shape = "l" * self.labels + "c" * (len(self.frame.columns) - self.labels)
        title = re.sub("([%_&])", r"\\\1", self.title)
        caption = {"caption": title, "label": f"table:{self.name}", "position_float": "centering"}
        style = self._style("textbf:--rwrap;", "underline:--rwrap;", "latex")
        made: str = style.to_latex(hrules=True, column_format=shape, **caption)
        return made.translate(_LATEX)

    def markdown(self) -> str:
        """GitHub's tables, with the note that says how to read them."""
        shown = self._marked(self.texts().map(_markdown), "**{}**", "<u>{}</u>")
        shown = shown.rename(columns=_markdown)
        table = shown.to_markdown(index=False, disable_numparse=True)
        table = re.sub(r" {2,}\|", " |", table)  # padding would change every line with one cell
        return "\n\n".join(filter(None, [f"**{_markdown(self.title)}**", table, self.note])) + "\n"

    def csv(self) -> str:
        """One line per row, numbers in full; no cell that a spreadsheet takes for a formula."""

        def safe(cell: Any) -> Any:
            return disarmed(printable(cell)) if isinstance(cell, str) else cell

        frame = self.frame.astype(object).map(safe).rename(columns=safe)
        made: str = frame.to_csv(index=False, lineterminator="\n")
        return made

    def text(self) -> str:
        """For a terminal: **best** and _second_."""
        shown = self._marked(self.texts(), "**{}**", "_{}_")
        sides = ["left"] * self.labels + ["right"] * (len(shown.columns) - self.labels)
        how = {"tablefmt": "simple", "disable_numparse": True, "colalign": sides}
        table = shown.to_markdown(index=False, **how)
        return "\n\n".join(filter(None, [printable(self.title), table, self.note]))

    def write(self, folder: Path) -> None:
        """The table as ``.md``, ``.tex`` and ``.csv``."""
        folder.mkdir(parents=True, exist_ok=True)
        for kind, text in (("md", self.markdown()), ("tex", self.latex()), ("csv", self.csv())):
            (folder / f"{self.name}.{kind}").write_text(text, encoding="utf-8")

    def _marked(self, cells: pd.DataFrame, best: str, second: str) -> pd.DataFrame:
        """Cells with their marks: a form that each is put into."""
        for (row, name), mark in self.marks.items():
            form = best if mark == "best" else second
            cells.loc[row, printable(name)] = form.format(cells.loc[row, printable(name)])
        return cells

    def _style(self, best: str, second: str, kind: str) -> Any:
        texts = self.texts()
        looks = self._marked(texts.map(lambda cell: ""), best, second)
        style = texts.style.hide(axis="index").apply(lambda _: looks, axis=None)
        return style.format(escape=kind).format_index(escape=kind, axis=1)


def marked(values: pd.Series) -> dict[tuple[Any, str], str]:
    """Best and second best of a column, as printed with two decimals; one alone is not best."""
    rounded = [round(v, 2) if isinstance(v, float) else math.nan for v in values]
    if sum(not math.isnan(v) for v in rounded) < 2:
        return {}
    marks = zip(values.index, expected_marks(rounded), strict=True)
    return {(row, values.name): mark for row, mark in marks if mark}


def _text(value: Any, digits: int | None) -> str:
    if value is None or value != value:
        return _DASH
    if isinstance(value, str):
        return printable(value)
    if digits is None:
        return people(float(value))
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a rounded -0.004 has no sign


def _markdown(text: object) -> str:
    return escaped(str(text), quote=False).translate(_MARKDOWN)
