"""What a result was made with."""

import platform
import subprocess

import torch

from tstar import __version__
from tstar.sweep import provenance


def test_versions_name_what_numbers_depend_on():
    found = provenance.versions()
    assert found["tstar"] == __version__
    assert found["torch"] == torch.__version__
    assert found["python"] == platform.python_version()
    assert found["device"].startswith("cpu (")
    assert len(found["device"]) > len("cpu ()")


def test_the_commit_is_marked_where_there_are_changes_and_none_where_there_is_no_git(monkeypatch):
    answers = {"rev-parse": "0123456789abcdef", "status": ""}
    monkeypatch.setattr(provenance, "_git", lambda where, command, *rest: answers[command])
    commit = provenance.commit.__wrapped__
    assert commit() == "0123456789ab"
    answers["status"] = " M run.py"
    assert commit() == "0123456789ab+"

    def absent(*_):
        raise subprocess.CalledProcessError(128, "git")

    monkeypatch.setattr(provenance, "_git", absent)
    assert commit() is None
