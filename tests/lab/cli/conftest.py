"""A small study in a folder of its own, and the commands called in this process."""

import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tstar.lab.sweep.engine
from tests.lab.cli.program import faulty
from tests.lab.sweep.small import InlineEngine
from tstar.errors import TstarError
from tstar.lab.cli import app as program
from tstar.lab.cli.app import _load_commands, app

STUDY = """
csg = false
[training]
epochs = 1
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 8
temperature = [1, 2]
seeds = 2
"""


class Inline(InlineEngine):
    """In the local engine's place, so that the commands are tested quickly."""

    devices = ("cpu",)

    def __init__(self, workers=None, device="auto", gpus_per_run=None):
        super().__init__(workers or 1)


@pytest.fixture
def run(tmp_path, monkeypatch):
    _load_commands()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tstar.lab.sweep.engine, "LocalEngine", Inline)
    Path("study.toml").write_text(STUDY, encoding="utf-8")

    def call(*words: str, code: int = 0):
        result = CliRunner().invoke(app, list(words))
        if isinstance(result.exception, TstarError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def main(monkeypatch, capsys):
    """The program with one more command, ``faulty``: its exit code and its lines on stderr."""
    program._load_commands()
    registered = program.app.registered_commands
    monkeypatch.setattr(program.app, "registered_commands", [*registered])
    program.app.command()(faulty)

    def call(*words: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["tstar", *words])
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as end:
                program.main()
        return end.value.code, [line for line in capsys.readouterr().err.splitlines() if line]

    return call
