"""``tstar data`` at the prompt."""

import json

import pytest

from tstar.lab.data import load


@pytest.fixture
def call(run):
    return lambda *words: run(*words).stdout


def test_ls_tells_what_is_on_disk(call, tmp_path):
    (tmp_path / "dtd" / "dtd").mkdir(parents=True)
    listed = json.loads(call("data", "ls", "--data-root", str(tmp_path), "--json"))
    present = {row["name"]: row["on_disk"] for row in listed["data"]}
    assert present["digits"]
    assert present["dtd"]
    assert not present["cifar10"]
    assert "oxford-iiit-pet" in call("data", "ls", "--data-root", str(tmp_path))


def test_export_gives_what_load_gives(call, tmp_path):
    target = tmp_path / "small.npz"
    call("data", "export", "digits", str(target), "--size", "4", "--train", "100", "--seed", "2")
    expected = load("digits", size=4).subset(100, seed=2)
    assert load("small", root=tmp_path).checksum() == expected.checksum()
