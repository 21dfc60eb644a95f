"""The keys of a study as a page: ``python -m research.study_keys > docs/study.md``."""

from __future__ import annotations

from dataclasses import MISSING, fields

from tstar.lab.sweep.spec import FIELDS, STUDY
from tstar.lab.training.config import Config

_HEAD = """# The keys of a study

A study is a TOML file: `name`, `about` and `csg` (whether csg is measured, true by default) at its top, one `[training]` table
with one value per key, one or several `[[grid]]` tables in which each key has a value or a list (all combinations are run),
and `[options.METHOD]` tables. `seeds = 3` in a grid stands for `seed = [0, 1, 2]`. A grid with `temperature` and no `norm` trains
the plain network; `norm = "batch"` puts a BatchNorm before the output layer.

Keys can be changed from the command line: `tstar sweep study.toml lr=0.03 seed=0,1`.

Keys marked ◆ may name a part of your own, `"./file.py:name"` (relative to the study) or `"package.module:name"`; see
[bring your own](researchers.md#bring-your-own). This page is generated from the code: `python -m research.study_keys > docs/study.md`.
"""


def page() -> str:
    trained = {item.name for item in fields(Config)}
    what = [name for name in STUDY if name not in trained]
    how = [name for name in STUDY if name in trained]
    return "\n".join(
        [_HEAD, "## What is run\n", _table(what), "## How it is trained\n", _table(how)]
    )


def _table(names: list[str]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name in names:
        item = FIELDS[name]
        default = "required" if item.default is MISSING else _toml(item.default)
        mark = " ◆" if item.metadata.get("own") else ""
        lines.append(
            f"| `{name}`{mark} | {_type(str(item.type))} | {default} | {item.metadata['meaning']} |"
        )
    return "\n".join(lines) + "\n"


def _type(text: str) -> str:
    words = {"int": "whole number", "float": "number", "bool": "true/false", "str": "string"}
    return " or ".join(words[part] for part in text.split(" | ") if part != "None")


def _toml(value: object) -> str:
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else f"`{value!r}`".replace("'", '"')


if __name__ == "__main__":
    print(page(), end="")
