"""DataSet: what it refuses, its checksum, and tasks made from it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.data.small import make
from tstar import TstarError
from tstar.lab.data import split


def test_checksum_depends_on_every_array_and_on_nothing_else():
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


def test_checksum_is_stable():
    """Stored results carry it: it must not change between versions without notice."""
    import hashlib

    data = make()
    expected = hashlib.sha256()
    kinds = {"x_train": "|u1", "y_train": "<i8", "x_test": "|u1", "y_test": "<i8"}
    for name, kind in kinds.items():
        array = getattr(data, name).numpy()
        expected.update(f"{name} {kind} {tuple(array.shape)}\n".encode() + array.tobytes())
    assert data.checksum() == expected.hexdigest()


def test_subset_is_stratified_seeded_and_made_of_the_originals():
    data = make()
    small = data.subset(8, 4, seed=1)
    assert small.y_train.bincount().tolist() == [2, 2, 2, 2]
    assert small.y_test.bincount().tolist() == [1, 1, 1, 1]
    assert torch.equal(small.x_train[:, 0, 0, 0] // 10, small.y_train)
    assert small.checksum() == data.subset(8, 4, seed=1).checksum()
    assert len({data.subset(8, seed=s).checksum() for s in range(8)}) > 1
    assert data.subset().checksum() == data.checksum()


def test_subset_keeps_every_class_of_an_unbalanced_set():
    y = torch.tensor([0] * 18 + [1] * 4 + [2, 3])
    assert make(y_train=y).subset(5).y_train.bincount(minlength=4).tolist() == [2, 1, 1, 1]
    with pytest.raises(TstarError, match="from 4 to 24"):
        make().subset(3)


def test_regroup_chooses_and_merges():
    data = make()
    new = data.regroup([[3], [0, 2]], ["d", "ac"], "new")
    assert (new.name, new.classes) == ("new", ("d", "ac"))
    old = new.x_train[:, 0, 0, 0] // 10
    assert torch.equal(new.y_train, torch.where(old == 3, 0, 1))
    assert sorted(set(old.tolist())) == [0, 2, 3]
    assert len(new.y_train) == 18


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=12), st.floats(0, 0.99), st.integers(0, 2**31)
)
def test_parts_are_disjoint_complete_and_in_proportion(sizes, fraction, seed):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]
    train, val = split(labels, fraction, seed)
    assert sorted([*train.tolist(), *val.tolist()]) == list(range(len(labels)))
    assert torch.equal(train, train.sort().values)
    assert torch.equal(val, val.sort().values)
    wanted = round(len(labels) * fraction)
    assert len(val) == min(wanted, len(labels) - len(sizes))
    kept = labels[train].bincount(minlength=len(sizes))
    assert kept.min() >= 1
    if wanted == len(val):
        taken = labels[val].bincount(minlength=len(sizes))
        free = kept > 1  # where the class could have given more
        exact = torch.tensor(sizes) * wanted / len(labels)
        assert (taken[free] >= exact[free].floor() - 1e-9).all()


def test_the_seed_decides_and_no_global_generator_is_used():
    labels = torch.arange(5).repeat(20)
    state = torch.get_rng_state()
    first = split(labels, 0.2, 3)[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, split(labels, 0.2, 3)[1])
    assert not torch.equal(first, split(labels, 0.2, 4)[1])


@pytest.mark.parametrize("fraction", [-0.1, 1, 1.5, float("nan")])
def test_fraction_out_of_range(fraction):
    with pytest.raises(TstarError, match="val_fraction"):
        split(torch.arange(4), fraction, 0)
