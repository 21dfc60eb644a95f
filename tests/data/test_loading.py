"""Names: what is known, what is near, what to put where. The digits."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.data import default_root, load, names
from tstar.data.catalogue import CATALOGUE


def test_digits_are_scikit_learns() -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    data = load("digits")
    assert (data.domain, data.num_classes, data.in_channels) == ("image", 10, 1)
    assert data.x_train.shape == (1438, 1, 8, 8)
    assert data.x_train.max() == 255
    found = np.concatenate([data.x_train.numpy(), data.x_test.numpy()])[:, 0].reshape(-1, 64)
    labels = np.concatenate([data.y_train.numpy(), data.y_test.numpy()])
    bunch = datasets.load_digits()
    gray = np.round(found / (255 / 16))
    assert sorted(map(tuple, np.column_stack([gray, labels]))) == sorted(
        map(tuple, np.column_stack([bunch.data, bunch.target]))
    )
    share = data.y_test.bincount() / (data.y_test.bincount() + data.y_train.bincount())
    assert (share - 0.2).abs().max() < 0.01


def test_digits_are_the_same_every_time_and_can_be_resized() -> None:
    assert load("digits").checksum() == load("Digits", size=8).checksum()
    assert load("digits", size=16).x_train.shape == (1438, 1, 16, 16)


def test_near_names_and_files_below_the_root(tmp_path: Path) -> None:
    with pytest.raises(TstarError, match=r"Unknown data set 'digit'; did you mean 'digits'"):
        load("digit", root=tmp_path)
    (tmp_path / "birdsong.npz").touch()
    with pytest.raises(TstarError, match="did you mean 'birdsong'"):
        load("birdsongs", root=tmp_path)
    with pytest.raises(TstarError, match="was not found below"):
        load("folder/x.npz", root=tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(TstarError, match=r"its name ends in '\.txt'"):
        load("notes.txt", root=tmp_path)


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in ("digits", "fashion-mnist")])
def test_not_on_disk_says_what_to_put_where_and_creates_nothing(name: str, tmp_path: Path) -> None:
    entry = CATALOGUE[name]
    with pytest.raises(TstarError) as caught:
        load(name, root=tmp_path)
    message = str(caught.value)
    assert str(tmp_path / entry.folder) in message
    assert entry.source in message
    assert ("download=True" in message) == entry.downloads
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_derived_tasks_ask_for_their_base(tmp_path: Path) -> None:
    with pytest.raises(TstarError, match=r"cifar100 must be on disk as .*cifar-100-python"):
        load("cifar100@10", root=tmp_path)


def test_names_lists_all() -> None:
    assert {"digits", "cifar100@10", "cifar100-hard2", "isic-2019"} <= set(names())
    assert names() == sorted(names())


def test_default_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSTAR_DATA", "somewhere")
    assert default_root() == Path("somewhere")
    monkeypatch.delenv("TSTAR_DATA")
    assert default_root() == Path.home() / ".cache" / "tstar"


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_size_must_be_positive(size: int) -> None:
    with pytest.raises(TstarError, match=r"size must be a (whole )?number"):
        load("digits", size=size)


def test_nothing_global_changes() -> None:
    state, legacy = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index, union-attr] # noqa: NPY002
    load("digits")
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], legacy)  # type: ignore[index] # noqa: NPY002
