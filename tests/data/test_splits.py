"""Stratified splits: exact counts, no overlap, the seed's alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tstar import TstarError
from tstar.data import split
from tstar.data.splits import stratified


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=12),
    st.floats(0, 0.99),
    st.integers(0, 2**31),
)
def test_parts_are_disjoint_complete_and_in_proportion(
    sizes: list[int], fraction: float, seed: int
) -> None:
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


def test_balanced_classes_give_equal_parts() -> None:
    labels = torch.arange(10).repeat(50)
    _, val = split(labels, 0.1, 0)
    assert labels[val].bincount().tolist() == [5] * 10


def test_the_seed_decides_and_no_global_generator_is_used() -> None:
    labels = torch.arange(5).repeat(20)
    state = torch.get_rng_state()
    first = split(labels, 0.2, 3)[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, split(labels, 0.2, 3)[1])
    assert not torch.equal(first, split(labels, 0.2, 4)[1])


def test_no_validation_part() -> None:
    train, val = split(torch.arange(4).repeat(3), 0, 0)
    assert len(val) == 0
    assert val.dtype == torch.int64
    assert train.tolist() == list(range(12))


def test_every_sample_is_drawn_equally_often() -> None:
    labels = torch.tensor([0] * 10 + [1] * 10)
    counts = sum(torch.bincount(split(labels, 0.2, seed)[1], minlength=20) for seed in range(500))
    assert isinstance(counts, torch.Tensor)
    # Binomial(500, 0.2): mean 100, standard deviation 9; five of them either way.
    assert counts.min() > 55
    assert counts.max() < 145


@pytest.mark.parametrize("fraction", [-0.1, 1, 1.5, float("nan")])
def test_fraction_out_of_range(fraction: float) -> None:
    with pytest.raises(TstarError, match="val_fraction"):
        split(torch.arange(4), fraction, 0)


def test_least_of_each_class() -> None:
    labels = torch.tensor([0] * 97 + [1, 2, 3])
    _, drawn = stratified(labels, 10, 0, keep=0, least=1)
    assert labels[drawn].bincount().tolist() == [7, 1, 1, 1]
