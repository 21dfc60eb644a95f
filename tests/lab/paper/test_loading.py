"""The paper's tables as data."""

import pandas as pd
import pytest

from tstar import TstarError
from tstar.lab import paper
from tstar.lab.paper.catalogue import SPECS
from tstar.lab.paper.loading import strip


def test_known_cells():
    datasets = paper.table("datasets").set_index(["scenario", "method"])
    assert datasets.loc[("SwinT FT", "csgcn"), "FLW"] == 90.21
    assert datasets.loc[("ResNet50 FT", "T=sqrt(M)"), "CUB"] == 5.14
    assert (
        paper.table("models")
        .set_index(["dataset", "method"])
        .loc[("CIFAR100", "T=sqrt(M)"), "EffNet-b5"]
        == 15.97
    )
    assert paper.table("footnotes")["value"].tolist() == [53.61, 73.52]
    assert (paper.table("footnotes")["lr"] == 0.01).all()


def test_numbers_are_numbers_and_text_is_text():
    for name in ("models", "transformers", "datasets", "smoothing", "corrections"):
        frame = paper.table(name)
        for column in SPECS[name].values:
            assert frame[column].dtype == float, (name, column)
    assert set(paper.table("characteristics")["closed_form"]) == {"Yes", "No"}
    assert pd.isna(paper.table("coefficients").loc[0, "gamma"])


def test_marks_are_read_from_the_cells():
    assert strip("**88.70**") == ("88.70", "best")
    assert strip("_88.57_") == ("88.57", "second")
    assert strip("88.57") == ("88.57", "")
    marks = paper.marks("models").set_index(["dataset", "method"])
    assert marks.loc[("CIFAR10", "T=sqrt(M)"), "ResNet50"] == "best"
    assert marks.loc[("CIFAR10", "csg"), "ResNet50"] == "second"


def test_a_table_is_a_fresh_copy():
    frame = paper.table("models")
    frame.loc[0, "ResNet50"] = -1.0
    assert paper.table("models").loc[0, "ResNet50"] == 84.80


def test_unknown_table_names_the_nearest():
    with pytest.raises(TstarError, match=r"table of the paper 'dataset'.*'datasets'"):
        paper.table("dataset")
