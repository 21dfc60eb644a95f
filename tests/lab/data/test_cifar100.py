"""CIFAR-100's superclasses, CIFAR100@10, and the subsets chosen by csg."""

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.lab.data import load
from tstar.lab.data.cifar100 import SUBSETS, derive, superclasses
from tstar.lab.data.dataset import DataSet

# Coarse label of each fine label 0…99, as CIFAR-100's archive stores them side by side.
COARSE = [
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15,
    0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4,
    18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19,
    5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
]  # fmt: skip


def cifar100(per_class=3):
    """A stand-in with CIFAR-100's classes; each pixel is the fine label."""
    fine = sorted(name for group in superclasses().values() for name in group)
    y = torch.arange(100).repeat(per_class)
    x = y.to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 2, 2).clone()
    return DataSet("cifar100", "image", x, y, x[:100], y[:100], tuple(fine))


def test_the_map_is_that_of_the_archive():
    groups = superclasses()
    assert list(groups) == sorted(groups)  # coarse_label_names are in alphabetical order
    assert [len(group) for group in groups.values()] == [5] * 20
    fine = sorted(name for group in groups.values() for name in group)
    assert len(set(fine)) == 100
    coarse = {name: label for label, group in enumerate(groups.values()) for name in group}
    assert [coarse[name] for name in fine] == COARSE


def test_at_ten_merges_five_classes_of_every_second_superclass():
    data = derive(cifar100(), "@10")
    assert data.name == "cifar100@10"
    assert data.classes == tuple(list(superclasses())[::2])
    assert data.classes[:2] == ("aquatic_mammals", "flowers")
    assert len(data.x_train) == 150  # half of 300: of 50,000 it is the paper's 25,000
    fine = data.x_train[:, 0, 0, 0].tolist()
    assert [COARSE[label] for label in fine] == (2 * data.y_train).tolist()
    assert data.y_train.bincount().tolist() == [15] * 10
    assert data.y_test.bincount().tolist() == [5] * 10


def test_the_order_of_the_classes_in_a_file_does_not_matter(tmp_path):
    data = cifar100()
    order = np.random.default_rng(0).permutation(100)
    np.savez(
        tmp_path / "mixed.npz",
        x_train=data.x_train.numpy().transpose(0, 2, 3, 1),
        y_train=np.argsort(order)[data.y_train.numpy()],
        x_test=data.x_test.numpy().transpose(0, 2, 3, 1),
        y_test=np.argsort(order)[data.y_test.numpy()],
        classes=np.array(data.classes)[order],
    )
    mixed = load("mixed@10", root=tmp_path)
    assert mixed.name == "mixed@10"
    assert mixed.checksum() == derive(data, "@10").checksum()


@pytest.mark.parametrize("subset", SUBSETS)
def test_subsets_by_csg(subset):
    data = derive(cifar100(), f"-{subset}")
    assert data.name == f"cifar100-{subset}"
    assert (data.num_classes, len(data.x_train)) == (10, 30)
    names = cifar100().classes
    assert [names[label] for label in data.x_train[:, 0, 0, 0].tolist()] == [
        data.classes[label] for label in data.y_train.tolist()
    ]


def test_other_data_sets_have_no_superclasses():
    with pytest.raises(TstarError, match="hundred fine classes of CIFAR-100, but digits has 10"):
        load("digits@10")
