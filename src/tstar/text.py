"""Names and messages from files and users, made safe to show."""

from __future__ import annotations

import html
import re
import unicodedata

# Control and format characters (bidirectional marks among them), surrogates, line and paragraph separators.
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: object, *, lines: bool = False) -> str:
    r"""Text with every character escaped that a terminal or browser would obey instead of showing.

    ``lines`` keeps newlines and tabs, for texts of several lines.

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
    """Text for a page: shown as it is, neither markup nor anything that a browser would obey."""
    return html.escape(printable(text, lines=True), quote=quote)


# A spreadsheet takes a cell that starts so for a formula: an apostrophe goes before it, and off again on reading.
_FORMULA = re.compile(r"^(?='*[=+\-@\t\r])")
DISARMED = r"^'(?='*[=+\-@\t\r])"


def disarmed(cell: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    return _FORMULA.sub("'", cell) if isinstance(cell, str) else cell
