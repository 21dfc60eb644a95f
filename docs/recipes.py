"""Write the table of recipes into the pages that show it: python docs/recipes.py"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tstar.recipes import Row, cells, rows

ROOT = Path(__file__).resolve().parents[1]


def markdown(every: Sequence[Row]) -> str:
    """The table for a page."""
    header, *body = cells(every)
    lines = [header, ["---", "---", *["--:"] * 6], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str) -> str:
    """A page with its tables of recipes as they are now."""
    # The short one: native heads, and rows that have something to do.
    short = [replace(row, widened=None) for row in rows() if row.changes]
    for name, table in (("recipes", markdown(short)), ("all recipes", markdown(rows()))):
        block = rf"(<!-- table {name} -->\n).*?(<!-- end of table -->)"
        text = re.sub(block, rf"\1\n{table}\n\n\2", text, flags=re.DOTALL)
    return text


def main() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "practitioners.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
