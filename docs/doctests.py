"""Examples of docstrings as code blocks in the API's page: bare ``>>>`` would be quotations in Markdown."""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"(?:^>>> .*\n?)(?:^(?!\s*$).*\n?)*", re.MULTILINE)


class Doctests(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Every example, up to the next empty line, between fences; without the options of doctest."""
    plain = re.sub(r"  # doctest: .*", "", text)
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", plain)
