"""Names: what is known, what is near, what to put where. The digits."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.lab.data import default_root, load


def test_near_names_and_files_below_the_root(tmp_path):
    for near, meant in (
        ("digit", "digits"),
        ("cifar_100", "cifar100"),
        ("tinyimagenet", "tiny-imagenet"),
    ):
        with pytest.raises(TstarError, match=rf"Unknown data set '{near}'; did you mean '{meant}'"):
            load(near, root=tmp_path)
    (tmp_path / "birdsong.npz").touch()
    with pytest.raises(TstarError, match="did you mean 'birdsong'"):
        load("birdsongs", root=tmp_path)
    with pytest.raises(TstarError, match="was not found below"):
        load("folder/x.npz", root=tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(TstarError, match=r"its name ends in '\.txt'"):
        load("notes.txt", root=tmp_path)


def test_an_unknown_name_says_where_it_was_looked_for(tmp_path):
    where = re.escape(f"below the data root ({tmp_path}) or in this folder; set root=")
    with pytest.raises(TstarError, match=where):
        load("xyz", root=tmp_path)
    with pytest.raises(TstarError, match="It was not found"):
        load("xyz", root=tmp_path / "none")


def test_default_root(monkeypatch):
    monkeypatch.setenv("TSTAR_DATA", "somewhere")
    assert default_root() == Path("somewhere")
    monkeypatch.delenv("TSTAR_DATA")
    assert default_root() == Path.home() / ".cache" / "tstar"


def test_nothing_global_changes():
    state, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    load("digits")
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], legacy)  # noqa: NPY002


def test_a_root_that_is_no_path_and_a_home_that_nobody_has():
    for root in (3, b"/tmp"):
        with pytest.raises(TstarError, match="must be given by its name or path"):
            load("x", root=root)
    with pytest.raises(TstarError, match="was not found"):
        load("~nobody-is-called-so/x.npz")
