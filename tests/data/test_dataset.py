"""DataSet: what it refuses, its checksum, and tasks made from it."""

import pytest
import torch

from tests.data.small import make
from tstar import TstarError


def test_facts() -> None:
    data = make()
    assert (data.num_classes, data.in_channels) == (4, 3)
    assert repr(data) == "DataSet('toy': image, 24 train / 8 test, 3×2×2 uint8, 4 classes)"


def test_checksum_depends_on_every_array_and_on_nothing_else() -> None:
    data = make()
    assert data.checksum() == make(name="renamed", classes=("w", "x", "y", "z")).checksum()
    strided = data.x_train.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert data.checksum() == make(x_train=strided).checksum()
    changed = [make(x_train=data.x_train + 1), make(x_test=data.x_test + 1)]
    changed += [make(y_train=data.y_train.flip(0)), make(y_test=data.y_test.flip(0))]
    swapped = make(
        x_train=data.x_test, y_train=data.y_test, x_test=data.x_train, y_test=data.y_train
    )
    assert len({data.checksum(), swapped.checksum(), *(d.checksum() for d in changed)}) == 6


def test_checksum_is_stable() -> None:
    """Stored results carry it: it must not change between versions without notice."""
    import hashlib

    data = make()
    expected = hashlib.sha256()
    for name, kind in (
        ("x_train", "|u1"),
        ("y_train", "<i8"),
        ("x_test", "|u1"),
        ("y_test", "<i8"),
    ):
        array = getattr(data, name).numpy()
        expected.update(f"{name} {kind} {tuple(array.shape)}\n".encode() + array.tobytes())
    assert data.checksum() == expected.hexdigest()


def test_subset_is_stratified_seeded_and_made_of_the_originals() -> None:
    data = make()
    small = data.subset(8, 4, seed=1)
    assert small.y_train.bincount().tolist() == [2, 2, 2, 2]
    assert small.y_test.bincount().tolist() == [1, 1, 1, 1]
    assert torch.equal(small.x_train[:, 0, 0, 0] // 10, small.y_train)
    assert small.checksum() == data.subset(8, 4, seed=1).checksum()
    assert len({data.subset(8, seed=s).checksum() for s in range(8)}) > 1
    assert data.subset().checksum() == data.checksum()


def test_subset_keeps_every_class_of_an_unbalanced_set() -> None:
    y = torch.tensor([0] * 18 + [1] * 4 + [2, 3])
    assert make(y_train=y).subset(5).y_train.bincount(minlength=4).tolist() == [2, 1, 1, 1]
    with pytest.raises(TstarError, match="between 4 and 24"):
        make().subset(3)


def test_regroup_chooses_and_merges() -> None:
    data = make()
    new = data.regroup([[3], [0, 2]], ["d", "ac"], "new")
    assert (new.name, new.classes) == ("new", ("d", "ac"))
    old = new.x_train[:, 0, 0, 0] // 10
    assert torch.equal(new.y_train, torch.where(old == 3, 0, 1))
    assert sorted(set(old.tolist())) == [0, 2, 3]
    assert len(new.y_train) == 18
    with pytest.raises(TstarError, match="in two"):
        data.regroup([[1], [1, 2]], ["x", "y"], "new")
    with pytest.raises(TstarError, match=r"0…3, but got 9"):
        data.regroup([[1], [9]], ["x", "y"], "new")


def test_class_index_knows_near_names() -> None:
    data = make(classes=("apple", "bear", "cat", "dog"))
    assert data.class_index("cat") == 2
    with pytest.raises(TstarError, match="did you mean 'apple'"):
        data.class_index("aple")
