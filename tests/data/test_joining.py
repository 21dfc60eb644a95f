"""Joined data sets: every sample once, every class its own."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tstar import TstarError
from tstar.data import DataSet, join, load
from tstar.data.augment import default
from tstar.data.text import vectors


def images(name: str, classes: int, size: int = 8, channels: int = 1) -> DataSet:
    generator = torch.Generator().manual_seed(classes)
    x = torch.randint(256, (3 * classes, channels, size, size), generator=generator)
    y = torch.arange(3 * classes) % classes
    split = 2 * classes
    x = x.to(torch.uint8)
    names = tuple(f"c{i}" for i in range(classes))
    return DataSet(name, "image", x[:split], y[:split], x[split:], y[split:], names)


def test_samples_and_classes_stand_side_by_side() -> None:
    first, second, third = images("a", 3), images("b", 2), images("c", 4)
    joined = join([first, second, third])
    assert joined.name == "a+b+c"
    assert joined.classes == (
        *("a/c0", "a/c1", "a/c2"), *("b/c0", "b/c1"), *("c/c0", "c/c1", "c/c2", "c/c3"),
    )  # fmt: skip
    for part in ("train", "test"):
        x, y = getattr(joined, f"x_{part}"), getattr(joined, f"y_{part}")
        assert len(x) == sum(len(getattr(s, f"y_{part}")) for s in (first, second, third))
        # Each class of the joined set has exactly the samples of its class before.
        for one in (first, second, third):
            for label, name in enumerate(one.classes):
                mine = x[y == joined.class_index(f"{one.name}/{name}")]
                theirs = getattr(one, f"x_{part}")[getattr(one, f"y_{part}") == label]
                assert torch.equal(mine, theirs)


def test_by_name(tmp_path: Path) -> None:
    for name, size in (("one", 10), ("two", 12)):
        x = np.full((4, size, size, 1), size, dtype=np.uint8)
        y = np.array([0, 1, 0, 1])
        np.savez(tmp_path / f"{name}.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    data = load("one+two+digits", root=tmp_path, size=6)
    assert (data.name, data.num_classes, data.x_train.shape[1:]) == (
        "one+two+digits",
        14,
        (1, 6, 6),
    )
    assert data.classes[1:5] == ("one/1", "two/0", "two/1", "digits/0")
    assert set(data.x_train[data.y_train == 3].flatten().tolist()) == {12}
    with pytest.raises(TstarError, match=r"one has .* 1×10×10 and two .* 1×12×12; pass size="):
        load("one+two", root=tmp_path)
    with pytest.raises(TstarError, match="both sides of each"):
        load("one+", root=tmp_path)
    with pytest.raises(TstarError, match="did you mean 'two'"):
        load("one+twoo", root=tmp_path)


def test_a_file_may_have_a_plus_in_its_name(tmp_path: Path) -> None:
    x, y = np.zeros((4, 8, 8), dtype=np.uint8), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "c++.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    assert load("c++", root=tmp_path).num_classes == 2


def test_refused() -> None:
    with pytest.raises(TstarError, match="At least two"):
        join([images("a", 2)])
    with pytest.raises(TstarError, match="'a' occurs twice"):
        join([images("a", 2), images("a", 3)])
    signals = DataSet(
        "s", "signal", torch.zeros(2, 1, 8), torch.arange(2), torch.zeros(2, 1, 8),
        torch.arange(2), ("x", "y"),
    )  # fmt: skip
    with pytest.raises(
        TstarError, match=r"a has image samples of 1×8×8 and s signal samples of 1×8"
    ):
        join([images("a", 2), signals])


def test_no_mirroring_if_one_of_the_sets_forbids_it() -> None:
    assert default("cifar100_32+tinyimagenet_32", "image").flip
    assert not default("cifar100_32+digits", "image").flip
    assert not default("gtsrb_32+cifar100_32", "image").flip


def test_texts_are_weighed_over_all_sets(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    for name, words in (("one", ["red car", "blue car"]), ("two", ["red cat", "a dog"])):
        lines = "label,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(words))
        for part in ("train", "test"):
            (tmp_path / f"{name}_{part}.csv").write_text(lines, encoding="utf-8")
    data = load("one+two", root=tmp_path, text_features=512)
    texts = ["red car", "blue car", "red cat", "a dog"]
    assert data.texts == (tuple(texts), tuple(texts))
    assert torch.equal(data.x_train, vectors(texts, texts, 512)[0])
    assert data.classes == ("one/0", "one/1", "two/0", "two/1")
