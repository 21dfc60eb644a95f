"""The search for subsets of CIFAR-100 with the csg of the paper's."""

import pytest

from research.choosing import TARGETS, choose
from tstar.lab.data.cifar100 import SUBSETS, _resource, subset_classes


def test_shipped_subsets_are_near_the_papers_csg_and_differ():
    record = _resource("cifar100_subsets.json")
    for name, target in TARGETS.items():
        entry = record["subsets"][name]
        assert entry["target"] == target
        assert entry["csg"] == pytest.approx(target, rel=0.05)
    assert len({frozenset(subset_classes(name)) for name in SUBSETS}) == 4
    assert record["command"].startswith("python -m research.choosing")


def difficulty(classes):
    """A stand-in for csg with a known value for every subset: from 0.46 to 9.46."""
    return 0.01 + sum(classes) / 100


def test_choosing_reaches_targets_that_random_subsets_miss():
    targets = {"low": 1.0, "middle": 4.95, "high": 8.9}
    found = choose(difficulty, 100, targets, draws=50, exchanges=2000, seed=0)
    for name, target in targets.items():
        chosen = found[name]
        assert chosen.csg == difficulty(chosen.classes)
        assert chosen.csg == pytest.approx(target, rel=0.006)
        assert list(chosen.classes) == sorted(set(chosen.classes))
        assert len(chosen.classes) == 10


def test_choosing_is_seeded_and_never_gives_one_subset_twice():
    twins = {"one": 5.0, "two": 5.0}
    first = choose(difficulty, 100, twins, draws=50, seed=1)
    assert first == choose(difficulty, 100, twins, draws=50, seed=1)
    assert first != choose(difficulty, 100, twins, draws=50, seed=2)
    assert first["one"].classes != first["two"].classes
