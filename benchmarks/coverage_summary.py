"""results/coverage/README.md from the CSV files: what passed, what did not and why, what was not run."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.metadata import version
from pathlib import Path

TARGETS = {"torchvision": "100 %", "timm": "≥ 99 %", "transformers": "≥ 95 %"}


def summarize(folder: Path) -> None:
    """Write the summary of every CSV file of rows in ``folder``."""
    lines = [
        "# Coverage",
        "",
        "Every model was built without weights for 13 classes and taken through `benchmarks/coverage_contract.py`:",
        "head found without help, M and K right (K as asked for, M as the library declares it, and the logits follow",
        "the layer), tempered, one training step, folded, folded logits equal to the tempered ones, the state dict's",
        "keys as before and loaded into the plain model. Rebuilt by `python benchmarks/coverage.py run LIBRARY`, which",
        "goes on where it stopped, and `python benchmarks/coverage.py summary`.",
        "",
        "The share is of the models run that have a classifier, in transformers of those that a tiny config builds here. «On",
        "meta» are models above 100 million parameters of which only shapes and keys were checked (the smallest of each family took a",
        "real step); «head='all'» are those with several heads, which `find_head` names; «bias added» those whose output layer",
        "has no bias, folded with `allow_bias=True`. A library with fewer models run than listed was run as far as time allowed,",
        "with models of every size; the row of an older version is then the last whole run, of an earlier state of tstar.",
        "",
        "| library | listed | run | no classifier | not built | passed | share | target | on meta | head='all' | bias added |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    details: list[str] = []
    for path in sorted(folder.glob("*.csv")):
        if "parameters" in path.name:
            continue
        library = path.name.partition("-")[0]
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        lines.append(line(library, path.stem, rows))
        details += detail(path.stem, rows)
    (folder / "README.md").write_text("\n".join([*lines, "", *details]), encoding="utf-8")


def line(library: str, title: str, rows: list[dict[str, str]]) -> str:
    outcomes = Counter(row["outcome"] for row in rows)
    apart = outcomes["no classifier"] + (outcomes["not built"] if library == "transformers" else 0)
    passed = [row for row in rows if row["outcome"] == "passed"]
    share = 100 * len(passed) / max(1, len(rows) - apart)
    meta = sum(row["device"] == "meta" for row in passed)
    several = sum(bool(row["argument"]) for row in passed)
    bare = sum(row["bias_added"] not in ("", "0") for row in passed)
    torch = ", ".join(sorted({row["torch"] for row in rows}))
    cells = [
        f"{title} (torch {torch})",
        listed(library) if title.endswith(version(library)) else len(rows),
        len(rows),
        outcomes["no classifier"],
        outcomes["not built"],
        len(passed),
        f"{share:.1f} %",
        TARGETS[library],
        meta,
        several,
        bare,
    ]
    return f"| {' | '.join(map(str, cells))} |"


def listed(library: str) -> int:
    if library == "transformers":
        from coverage_transformers import transformers_names

        return len(transformers_names())
    from coverage_models import timm_names, torchvision_names

    return len(timm_names() if library == "timm" else torchvision_names())


def detail(title: str, rows: list[dict[str, str]]) -> list[str]:
    others = [row for row in rows if row["outcome"] != "passed"]
    if not others:
        return [f"## {title}", "", "No failure.", ""]
    lines = [
        f"## {title}: what did not pass",
        "",
        "| model | outcome | reason | what resolves it |",
        "|---|---|---|---|",
    ]
    for row in sorted(others, key=lambda r: (r["outcome"], r["model"])):
        # A model that no rule could build has a reason a rule, often the same.
        reason = " / ".join(dict.fromkeys(part.strip() for part in row["reason"].split("|")))
        lines.append(f"| {row['model']} | {row['outcome']} | {reason[:200]} | {row['argument']} |")
    return [*lines, ""]
