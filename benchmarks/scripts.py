"""The table of the scripts that were tried (``tests/scripts``), from their headers, with the versions at hand.

python -m benchmarks.scripts   # writes results/coverage/scripts.md
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "results" / "coverage" / "scripts.md"
_OUTCOMES = {
    "folds": "trains, and folds exactly",
    "trains": "trains",
    "prints": "trains, and folds exactly",
    "warns": "warns",
    "refuses": "refused",
}
_HELPERS = ("toy", "test_scripts")


@dataclass(frozen=True)
class Script:
    """One script: what it is about, what it needs, and what must happen."""

    path: Path
    title: str
    packages: tuple[str, ...]
    outcome: str
    sentence: str
    slow: bool


def read_scripts(folder: Path) -> list[Script]:
    """Every script in a folder, by the header in its docstring."""
    paths = sorted(path for path in folder.glob("*.py") if path.stem not in _HELPERS)
    return [_read(path) for path in paths]


def _read(path: Path) -> Script:
    with path.open(encoding="utf-8") as file:
        header = ast.get_docstring(ast.parse(file.read())) or ""
    title, _, rest = header.partition("\n")
    fields = dict(re.findall(r"^(\w+): (.*)$", rest, re.MULTILINE))
    outcome, _, sentence = fields["outcome"].partition(" ")
    if outcome not in _OUTCOMES:
        raise SystemExit(f"{path}: unknown outcome {outcome!r}")
    return Script(
        path=path,
        title=title,
        packages=tuple(name.strip() for name in fields["packages"].split(",")),
        outcome=outcome,
        sentence=sentence.strip('"'),
        slow=fields.get("slow") == "true",
    )


def rows(scripts: list[Script]) -> list[str]:
    """One row per script: title, file, packages, what happens."""
    lines = []
    for script in scripts:
        said = "" if script.outcome not in ("warns", "refuses") else f": “{script.sentence}”"
        said = re.sub(r"\\(.)", r"\1", said)
        packages = ", ".join(script.packages)
        lines.append(
            f"| {script.title.rstrip('.')} | `{script.path.name}` | {packages} | {_OUTCOMES[script.outcome]}{said} |"
        )
    return lines


def main() -> None:
    scripts = read_scripts(ROOT / "tests" / "scripts")
    names = sorted({name for script in scripts for name in script.packages})
    known = {"sklearn": "scikit-learn"}
    versions = ", ".join(f"{n} {metadata.version(known.get(n, n))}" for n in names)
    text = [
        "# Scripts that were tried",
        "",
        "Each is a file in `tests/scripts/` that a user could have written; the tests run them all. Written by "
        "`python -m benchmarks.scripts`.",
        "",
        f"With {versions}.",
        "",
        "| script | file | packages | what happens |",
        "|---|---|---|---|",
        *rows(scripts),
        "",
    ]
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text("\n".join(text), encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)} ({len(scripts)} scripts)")


if __name__ == "__main__":
    main()
