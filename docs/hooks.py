"""What mkdocs adds to the pages: the calculator, and the tables that scripts have written to results/."""

import csv
import re
from pathlib import Path

from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).resolve().parents[1] / "results"


def on_files(files: Files, config) -> Files:  # type: ignore[no-untyped-def]
    from tstar.calculator import page

    files.append(File.generated(config, "calculator/page.html", content=page()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the tables where the pages name them."""
    for name, table in (("cost", cost), ("variance", variance), ("coverage", coverage)):
        mark = f"{{{{ {name} }}}}"
        if mark in markdown:
            markdown = markdown.replace(mark, table())
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """The docstrings' ``:func:`name` `` is for readers of the source; on a page the name is enough."""
    return re.sub(r":(?:func|class|meth|mod|attr):(?=<code>)", "", html)


def cost() -> str:
    lines = (RESULTS / "cost" / "paper.md").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith("|"))


def coverage() -> str:
    """The first table of the coverage: one line a library."""
    text = (RESULTS / "coverage" / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))


def variance() -> str:
    head = "| data | K | M | trained at T | diagonal | covariance | its share |"
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    with (RESULTS / "variance" / "variance.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            trained = row["temperature"] if row["when"] == "after training" else "untrained"
            parts = " | ".join(f"{float(row[key]):.2f}" for key in ("diagonal", "covariance"))
            share = f"{100 * float(row['covariance_share']):.0f} %"
            name = row["dataset"].removesuffix("_32")
            lines.append(
                f"| {name} | {row['classes']} | {row['features']} | {trained} | {parts} | {share} |"
            )
    return "\n".join(lines)
