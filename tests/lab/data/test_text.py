"""Text in CSV files."""

import math

import pytest
import torch

pytest.importorskip("sklearn")

from tstar import TstarError
from tstar.lab.data import load
from tstar.lab.data.text import vectors

TRAIN = (
    'label,label_name,text\n1,bank,my card is lost\n0,animal,"a cat, a dog"\n1,bank,my account\n'
)
TEST = "label,label_name,text\n0,animal,the dog\n1,bank,card lost\n"


def write(folder, name="toy", **parts):
    for part, content in parts.items():
        (folder / f"{name}_{part}.csv").write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["toy", "toy_train.csv", "toy.csv"])
def test_a_pair_of_files(tmp_path, name):
    data = load(name, root=write(tmp_path, train=TRAIN, test=TEST))
    assert (data.name, data.domain, data.classes) == ("toy", "text", ("animal", "bank"))
    assert data.y_train.tolist() == [1, 0, 1]
    assert data.y_test.tolist() == [0, 1]
    assert data.x_train.shape == (3, 2048)
    assert torch.allclose(data.x_train.norm(dim=1), torch.ones(3), atol=1e-5)


def test_weights_follow_the_formula():
    """Words in separate bins: x ∝ n·(1 + ln((1 + N)/(1 + N_j))), here worked out by hand."""
    train, _ = vectors(["red red blue", "blue", "green blue"], ["red"], 2**16)
    row = train[0][train[0] > 0].sort().values
    rare, common = 1 + math.log(4 / 2), 1 + math.log(4 / 4)
    # once: blue (common); "red red", "red blue" (rare); twice: red (rare).
    expected = torch.tensor([common, rare, rare, 2 * rare])
    assert torch.allclose(row, expected / expected.norm(), atol=1e-6)


def test_weights_are_fitted_on_the_training_texts_only():
    train = ["red blue", "green blue"]
    first, one = vectors(train, ["red red"], 256)
    second, two = vectors(train, ["red red", *["red"] * 50], 256)
    assert torch.equal(first, second)
    assert torch.equal(one[0], two[0])


def test_a_validation_file_joins_the_training_part(tmp_path):
    write(tmp_path, train=TRAIN, test=TEST, val="label,label_name,text\n0,animal,a horse\n")
    data = load("toy", root=tmp_path)
    assert data.y_train.tolist() == [1, 0, 1, 0]


def test_a_single_file_and_names_as_labels(tmp_path):
    lines = [f"{'spam' if i % 2 else 'ham'},text number {i}" for i in range(20)]
    (tmp_path / "mail.csv").write_text("label,text\n" + "\n".join(lines), encoding="utf-8")
    data = load("mail", root=tmp_path)
    assert data.classes == ("ham", "spam")
    assert data.y_train.bincount().tolist() == [8, 8]
    assert data.y_test.bincount().tolist() == [2, 2]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("text,name\nx,y\n", "columns label and text .* has text, name"),
        ("", "must be a CSV file in UTF-8"),
        ("label,text\n", "has none below its first line"),
        ("label,text\n0,a\n1\n", "row 2 below the first line does not"),
        ("label,text\n0,a\n0,b\n", "at least two classes"),
        ("label,text\n0,a\n2,b\n", "labels 0…1 without gaps"),
        ('label,text\n0,"never closed\n', "CSV file in UTF-8"),
    ],
)
def test_refused(tmp_path, train, message):
    with pytest.raises(TstarError, match=message):
        load("toy", root=write(tmp_path, train=train, test=TEST))
