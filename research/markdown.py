"""Tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

OPTIMIZERS = {"sgd": "SGD", "adamw": "AdamW"}


def table(head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """The first columns to the left, the others to the right."""
    rule = "|".join([*["---"] * left, *["--:"] * (len(head) - left)])
    rows = [f"| {' | '.join(cells)} |" for cells in (head, *lines)]
    return "\n".join([rows[0], f"|{rule}|", *rows[1:]])


def folded(title: str, text: str) -> str:
    """A part that a reader opens."""
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text}\n\n</details>\n'


def fill(page: Path, name: str, text: str) -> None:
    """Put it between the marks of that name."""
    marks = rf"(<!-- table {name} -->\n\n).*?(\n\n<!-- end of table -->)"
    filled = re.sub(marks, lambda m: m[1] + text + m[2], page.read_text("utf-8"), flags=re.DOTALL)
    page.write_text(filled, encoding="utf-8")
