"""A small study in a folder of its own, and the commands called in this process."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tstar.sweep.engine
from tstar.cli.app import _load_commands, app
from tstar.errors import TstarError
from tstar.sweep.execute import execute

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


class Inline:
    """The local engine's interface without processes, so that the commands are tested quickly."""

    def __init__(self, workers=None, device="auto", gpus_per_run=None):
        self.slots, self.jobs = workers or 1, []

    def submit(self, job):
        self.jobs.append(job)

    def collect(self, timeout):
        return [execute(self.jobs.pop(0))]

    def close(self):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    _load_commands()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tstar.sweep.engine, "LocalEngine", Inline)
    Path("study.toml").write_text(STUDY, encoding="utf-8")

    def call(*words: str, code: int = 0):
        result = CliRunner().invoke(app, list(words))
        if isinstance(result.exception, TstarError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call
