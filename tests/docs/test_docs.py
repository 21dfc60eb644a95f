"""Every code block of the documentation and the README does what it says.

A block is run as it stands, in the page's order. A line ``<!-- gpu -->`` or ``<!-- cluster -->`` before a block says
that it takes hardware or long: it is read, not run. ``<!-- setup … -->`` holds Python that is run and not shown.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import typer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tstar.lab.cli import app as program
from tstar.lab.sweep.study import load_study

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
# Commands that train, or read what was trained.
SLOW = ("demo", "sweep", "check", "compare", "report")
# Programs that a page may name and that no test starts.
OTHERS = {"pip", "make", "ray", "git", "cd", "mkdocs", "python", "source", "for"}

_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>gpu|cluster) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```"
    r"|^<!-- setup\n(?P<setup>.*?)^-->",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block: its language, its text, the line it starts at, and whether it is only read."""

    language: str
    text: str
    line: int
    dry: bool = False

    @property
    def commands(self) -> list[tuple[list[str], list[str]]]:
        """Of a console block: the words of each command, and the lines shown below it."""
        found: list[tuple[list[str], list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((shlex.split(line[2:], comments=True), []))
            elif found and line.strip():
                found[-1][1].append(line)
        return found


def blocks(text: str) -> list[Block]:
    """Every block of a page, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["setup"] is not None:
            found.append(Block("python", match["setup"], line))
        else:
            found.append(Block(match["language"], match["text"], line, match["mark"] is not None))
    return found


def is_slow(page: list[Block]) -> bool:
    """Whether a page trains something."""
    commands = [words for block in page if block.language == "console" and not block.dry
                for words, _ in block.commands]  # fmt: skip
    return any(words[0] == "tstar" and words[1] in SLOW for words in commands)


READ = {page: blocks(page.read_text(encoding="utf-8")) for page in PAGES}
ALL = [
    pytest.param(block, id=f"{page.name}:{block.line}") for page in PAGES for block in READ[page]
]
KNOWN = {"python", "console", "toml", "text", ""}


@pytest.fixture(scope="module")
def command():
    program._load_commands()
    return typer.main.get_command(program.app)


@pytest.mark.parametrize("block", ALL)
def test_every_block_is_sound(block: Block, command, tmp_path):
    """Python compiles, TOML is a study, and every command, option and extra that is named exists."""
    assert block.language in KNOWN
    if block.language == "python":
        compile(block.text, f"line {block.line}", "exec")
    elif block.language == "toml":
        study = tmp_path / "study.toml"
        study.write_text(block.text, encoding="utf-8")
        assert len(load_study(study)) > 0
    elif block.language == "console":
        assert block.commands, "a console block has lines that start with '$ '"
        for words, _ in block.commands:
            check_words(words, command)


def check_words(words: list[str], command) -> None:
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{word}:", makefile, re.MULTILINE) for word in words[1:]), words
    elif words[0] == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        known = {*project["optional-dependencies"]}
        for extras in re.findall(r"\[([\w,-]+)\]", " ".join(words)):
            assert set(extras.split(",")) <= known, words
    elif words[0] == "tstar":
        parse(command, words[1:])
    else:
        assert words[0] in OTHERS, f"{words[0]} is not a program that the tests know"


def parse(command, words: list[str]) -> None:
    """Read the words as the program would, without running anything."""
    name = "tstar"
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, name, words = command.commands[words[0]], f"{name} {words[0]}", words[1:]
    if words in (["--help"], ["--version"]):
        return
    assert not hasattr(command, "commands"), f"{name} has no command {words[:1]}"
    with command.make_context(name, list(words)):
        pass


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=page.name, marks=pytest.mark.slow if is_slow(READ[page]) else ()
        )
        for page in PAGES
    ],
)  # fmt: skip
def test_every_block_runs(page: Path, tmp_path, monkeypatch):
    for needed in ("torchvision", "sklearn", "pandas", "scipy", "matplotlib", "PIL"):
        pytest.importorskip(needed)
    folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"} | yours()
    shown = [block for block in READ[page] if not block.dry]
    for block, after in itertools.pairwise([*shown, Block("", "", 0)]):
        where = f"{page.name}, line {block.line}"
        if "__main__" in block.text:  # a script, which its workers import
            Path("script.py").write_text(block.text, encoding="utf-8")
            subprocess.run([sys.executable, "script.py"], check=True, capture_output=True)
        elif block.language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("default")  # a user's session does not raise them either
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile("\n" * block.line + block.text, where, "exec"), names)
            if after.language == "text" and printed.getvalue():  # what is shown is what it prints
                assert after.text.split() == printed.getvalue().split(), where
        elif block.language == "console":
            for words, lines in block.commands:
                if words[0] == "tstar":
                    run(words[1:], lines, where)
        elif block.language == "toml":
            Path("my-study.toml").write_text(block.text, encoding="utf-8")


def run(words: list[str], shown: list[str], where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tstar", *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "COLUMNS": "120", "MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, f"{where}: tstar {' '.join(words)}\n{done.stderr}"
    plain = [" ".join(line.split()) for line in done.stdout.splitlines()]
    at = 0
    for line in shown:  # what is shown is printed, in this order
        wanted = " ".join(line.split())
        assert wanted in plain[at:], f"{where}: {wanted!r} is not in\n{done.stdout}"
        at = plain.index(wanted, at) + 1


def yours() -> dict[str, object]:
    """What the pages take from their reader: a network and a loader."""
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    data = TensorDataset(torch.randn(320, 20), torch.arange(320) % 10)
    return {"torch": torch, "model": model, "train_loader": DataLoader(data, 32)}


def folder(where: Path) -> None:
    """What the pages assume to be there: the studies, and a folder of images."""
    from PIL import Image
    from sklearn.datasets import load_digits

    shutil.copytree(ROOT / "studies", where / "studies")
    digits = load_digits()
    for i, (image, label) in enumerate(zip(digits.images[:120], digits.target, strict=False)):
        target = where / "path" / "to" / "images" / f"digit {label}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype("uint8")).save(target / f"{i}.png")


def test_the_reader_of_blocks_sees_what_is_there():
    page = "```python\na\n```\n<!-- gpu -->\n```console\n$ tstar x  # why\nout\n```\n<!-- setup\nb\n-->\n"
    first, second, third = blocks(page)
    assert (first.language, first.text, first.line) == ("python", "a\n", 1)
    assert second.dry
    assert second.commands == [(["tstar", "x"], ["out"])]
    assert (third.language, third.text) == ("python", "b\n")


def test_a_wrong_option_a_wrong_output_and_a_wrong_extra_are_noticed(command):
    with pytest.raises(Exception, match="No such option"):
        parse(command, ["temperature", "--features", "64", "--nope"])
    with pytest.raises(AssertionError, match="is not in"):
        run(["--version"], ["tstar 99"], where="here")
    with pytest.raises(AssertionError):
        check_words(["pip", "install", "tstar[nothing]"], command)


def test_every_fence_is_a_block():
    """The pattern misses no block: a page has two fences for each."""
    for page in PAGES:
        fences = re.findall(r"^\s*```", page.read_text(encoding="utf-8"), re.MULTILINE)
        shown = [block for block in READ[page] if not is_hidden(page, block)]
        assert len(fences) == 2 * len(shown), page.name


def is_hidden(page: Path, block: Block) -> bool:
    return page.read_text(encoding="utf-8").splitlines()[block.line - 1].startswith("<!-- setup")


def test_the_api_names_what_exists():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = re.findall(
        r"^::: ([\w.]+)\n(?:    options: { members: \[(.*)\] })?", text, re.MULTILINE
    )
    names = [name for name, _ in found]
    names += [f"{name}.{each}" for name, some in found if some for each in some.split(", ")]
    assert len(names) > 50
    for name in names:
        pkgutil.resolve_name(name)
