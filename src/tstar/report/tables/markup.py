"""A table as HTML, Markdown, LaTeX, CSV, and for a terminal. Whatever is in a name stays text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tstar.report.tables.cells import Cell, Table
from tstar.text import disarmed, escaped, printable

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_LATEX = {
    **{"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_"},
    **{"{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "δ": r"$\delta$", "Δ": r"$\Delta$"},
    **{"±": r"$\pm$", "·": r"$\cdot$", "–": "--", "√": r"$\surd$", "×": r"$\times$"},
    **{"−": "$-$", "ε": r"$\epsilon$"},
}
# The paper's own print of its methods' names.
_PRINTED = {
    "BN, T = 1": "BN, $T = 1$",
    "T = √M": r"$T = \sqrt{M}$",
    "BN, Hasegawa & Sakai T*": r"BN, Hasegawa \& Sakai $\hat{T}^{*}$",
    **{
        f"BN, Hasegawa & Sakai T*_{v}": rf"BN, Hasegawa \& Sakai $\hat{{T}}^{{*}}_{{{v}}}$"
        for v in ("csg", "cn", "csgcn")
    },
    "BN, the law's T": "BN, the law's $T$",
}


def to_html(table: Table) -> str:
    """A ``<table>``; each block is a body of its own, so that sorting stays within it."""
    cells = "".join(
        f'<th scope="col"{_align(i, table)}><button type="button">{escaped(name)}</button></th>'
        for i, name in enumerate(table.columns)
    )
    lines = ['<table class="sortable">', f"<thead><tr>{cells}</tr>"]
    for head in table.heads:
        lines.append(
            "<tr>"
            + "".join(f"<td{_align(i, table)}>{escaped(t)}</td>" for i, t in enumerate(head))
            + "</tr>"
        )
    lines.append("</thead>")
    for block in table.blocks:
        lines.append("<tbody>")
        if block.heading:
            span = len(table.columns)
            lines.append(
                f'<tr class="block"><th colspan="{span}" scope="rowgroup">{escaped(block.heading)}</th></tr>'
            )
        for row in block.rows:
            lines.append(
                "<tr>"
                + "".join(
                    f"<td{_align(i, table)}{_sorting(cell)}>{_html_mark(cell)}</td>"
                    for i, cell in enumerate(row)
                )
                + "</tr>"
            )
        lines.append("</tbody>")
    return "\n".join([*lines, "</table>"])


def to_markdown(table: Table) -> str:
    """GitHub's tables; underlining is HTML there."""
    widths = len(table.columns)
    lines = [
        f"**{_markdown(table.title)}**",
        "",
        "| " + " | ".join(map(_markdown, table.columns)) + " |",
        "|" + "|".join("---" if i < table.labels else "---:" for i in range(widths)) + "|",
    ]
    lines += ["| " + " | ".join(map(_markdown, head)) + " |" for head in table.heads]
    mark = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}
    for block in table.blocks:
        if block.heading:
            lines.append(f"| **{_markdown(block.heading)}** |" + " |" * (widths - 1))
        for row in block.rows:
            texts = [mark[cell.mark].format(_markdown(cell.text)) for cell in row]
            lines.append("| " + " | ".join(texts) + " |")
    remarks = [table.note, *table.notes]
    return "\n".join([*lines, "", *(f"{_markdown(text)}\n" for text in remarks if text)])


def to_latex(table: Table) -> str:
    """A table of booktabs, in the paper's layout: blocks, bold best, underlined second."""
    mark = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}", "": "{}"}
    shape = "l" * table.labels + "c" * (len(table.columns) - table.labels)
    lines = [
        r"\begin{table}[h]",
        r"\centering",
        rf"\caption{{{latex(table.title)}}}",
        rf"\label{{table:{table.name}}}",
        rf"\begin{{tabular}}{{@{{}}{shape}@{{}}}}",
        r"\toprule",
        " & ".join(map(latex, table.columns)) + r" \\",
        *(" & ".join(map(latex, head)) + r" \\" for head in table.heads),
    ]
    for block in table.blocks:
        lines.append(r"\midrule")
        indent = ""
        if block.heading:
            lines.append(
                rf"\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\textbf{{{latex(block.heading)}}}}} \\"
            )
            indent = r"\quad "
        for row in block.rows:
            texts = [mark[cell.mark].format(latex(cell.text)) for cell in row]
            lines.append(indent + " & ".join(texts) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_csv(table: Table) -> str:
    """One line per row, numbers in full; a column says the block where there are blocks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    blocks = any(block.heading for block in table.blocks)
    writer.writerow(map(disarmed, [*(["block"] if blocks else []), *table.columns]))
    for block in table.blocks:
        for row in block.rows:
            values = [cell.text if cell.value is None else cell.value for cell in row]
            writer.writerow(map(disarmed, [*([block.heading] if blocks else []), *values]))
    return text.getvalue()


def to_rich(table: Table, *, plain: bool = False) -> RichTable:
    """For a terminal; names are text, not markup. ``plain`` writes marks as **best** and _second_, for a file."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    style = {"best": "bold", "second": "underline", "": ""}
    signs = {"best": "**{}**", "second": "_{}_", "": "{}"}
    shown = RichTable(
        title=Text(table.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for i, name in enumerate(table.columns):
        shown.add_column(Text(name), justify="left" if i < table.labels else "right")
    for head in table.heads:
        shown.add_row(*(Text(text, style="dim") for text in head))
    for block in table.blocks:
        if block.heading:
            shown.add_row(Text(block.heading, style="italic"))
        for row in block.rows:
            shown.add_row(
                *(
                    # A span, so that the padding stays unmarked.
                    Text.assemble((printable(cell.text), style[cell.mark]))
                    if not plain
                    else Text(signs[cell.mark].format(printable(cell.text)))
                    for cell in row
                )
            )
    return shown


WRITERS: dict[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "tex": to_latex,
    "csv": to_csv,
}


def latex(text: str) -> str:
    """Text for LaTeX: special characters escaped, the methods of the paper in its own print."""
    plain = _PRINTED.get(text)
    return plain if plain is not None else "".join(_LATEX.get(char, char) for char in text)


def _align(index: int, table: Table) -> str:
    return "" if index < table.labels else ' class="number"'


def _sorting(cell: Cell) -> str:
    return "" if cell.value is None else f' data-value="{escaped(str(cell.value))}"'


def _html_mark(cell: Cell) -> str:
    text = escaped(printable(cell.text))
    return {"best": f"<b>{text}</b>", "second": f"<u>{text}</u>", "": text}[cell.mark]


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", escaped(text, quote=False)).replace("\n", " ")
