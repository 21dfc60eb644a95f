"""Names: what is known, what is near, what to put where. The digits."""

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.lab.data import load


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
