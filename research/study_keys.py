"""The keys of a study as a page: ``python -m research.study_keys > docs/study.md``. The meanings are the docstrings'."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields

from tstar.lab.sweep.spec import CONFIG_FIELDS, KINDS, OWN, Spec
from tstar.lab.training.config import Config

HIDDEN = ("options", "role", "source", "data_checksum")
SPEC_FIELDS = tuple(name for name in KINDS if name not in (*HIDDEN, *CONFIG_FIELDS))

_HEAD = """# The keys of a study

A study is a TOML file: `name`, `about` and `csg` (whether csg is measured, true by default) at its top, one `[training]` table
with one value per key, one or several `[[grid]]` tables in which each key has a value or a list (all combinations are run),
and `[options.METHOD]` tables. `seeds = 3` in a grid stands for `seed = [0, 1, 2]`. A grid with `temperature` and no `norm` trains
the plain network; `norm = "batch"` puts a BatchNorm before the output layer.

Keys can be changed from the command line: `tstar sweep study.toml lr=0.03 seed=0,1`.

Keys marked ◆ may name a part of your own, `"./file.py:name"` (relative to the study) or `"package.module:name"`; see
[bring your own](researchers.md#bring-your-own). This page is generated from the code: `python -m research.study_keys > docs/study.md`.
"""


def meanings(kind: type) -> dict[str, str]:
    """The attributes of a docstring, name → meaning."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")[
        2
    ]  # Python 3.13 takes the indent away
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def page() -> str:
    parts = [
        _HEAD,
        "## What is run\n\n" + _table(Spec, SPEC_FIELDS),
        "## How it is trained\n\n" + _table(Config, CONFIG_FIELDS),
    ]
    return "\n".join(parts)


def _table(kind: type, names: tuple[str, ...]) -> str:
    known = meanings(kind)
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for item in fields(kind):
        if item.name in names:
            default = "required" if item.default is MISSING else _toml(item.default)
            mark = " ◆" if item.name in OWN else ""
            meaning = known[item.name].replace("``", "`")
            lines.append(
                f"| `{item.name}`{mark} | {_type(str(item.type))} | {default} | {meaning} |"
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
