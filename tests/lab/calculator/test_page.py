"""The page as a file: self-contained, from the package's own numbers."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from tstar.lab.calculator import facts, page


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.facts = ""
        self._inside = False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") == "facts"

    def handle_data(self, data):
        if self._inside:
            self.facts += data

    def handle_endtag(self, tag):
        self._inside = False


@pytest.fixture(scope="module")
def read() -> Reader:
    reader = Reader()
    reader.feed(page())
    return reader


def test_nothing_is_fetched(read):
    assert "{{" not in page()
    for tag, attrs in read.tags:
        for name in ("src", "href", "action"):
            assert (attrs.get(name) or "data:").startswith("data:"), (tag, attrs)
    assert "default-src 'none'" in page()
    assert not re.search(r"@import|url\(", page())


def test_every_field_has_a_label(read):
    labeled = {attrs["for"] for tag, attrs in read.tags if tag == "label"}
    fields = {attrs["id"] for tag, attrs in read.tags if tag in ("input", "select")}
    assert fields == labeled


def test_embedded_json_cannot_close_its_element(read):
    assert "<" not in read.facts
    assert json.loads(read.facts) == json.loads(json.dumps(facts()))


def test_the_command_writes_the_page_without_torch(tmp_path):
    target = tmp_path / "page.html"
    code = (
        f"import sys; sys.argv = ['tstar', 'calculator', '-o', {str(target)!r}]\n"
        "from tstar.lab.cli import main\ntry:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        "assert not {'torch', 'numpy', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(target)
    assert target.read_text(encoding="utf-8") == page()
