"""Text as it is shown: safe for a terminal and a page, and the same in both."""

from __future__ import annotations

import html
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
# Control and format characters (bidirectional marks too), surrogates, line separators.
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: object, *, lines: bool = False) -> str:
    r"""Text with every character escaped that a terminal or browser would obey.

    ``lines`` keeps newlines and tabs.

    >>> printable("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return "".join(
        character
        if unicodedata.category(character) not in _HIDDEN or (lines and character in "\n\t")
        else character.encode("unicode_escape").decode()
        for character in str(text)
    )


def escaped(text: object, *, quote: bool = True) -> str:
    """Text for a page: shown as it is, never markup."""
    return html.escape(printable(text, lines=True), quote=quote)


def tracked(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """The items; after two seconds a line on a terminal's stderr counts them, until they end."""
    due, terminal = time.monotonic() + 2.0, getattr(sys.stderr, "isatty", bool)()
    for count, item in enumerate(items):
        if terminal and time.monotonic() > due:
            due = time.monotonic() + 0.1
            of = "" if total is None else f" of {total:,}"
            print(f"\r\x1b[K{what}: {count:,}{of}", end="", file=sys.stderr, flush=True)
        yield item
    if terminal:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class ShownAsText:
    """Something that a script, a terminal and a notebook show as the same text."""

    def __rich__(self) -> Any:
        from rich.text import Text

        first, *rest = str(self).splitlines()
        return Text.assemble((first, "bold"), *(f"\n{line}" for line in rest))

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(self)}</pre>"
