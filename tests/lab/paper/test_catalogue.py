"""What the paper's tables hold, and where they are printed."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tstar import TstarError
from tstar.formula import VARIANTS, get
from tstar.lab import paper
from tstar.lab.paper.catalogue import METHODS, SPECS, printed, strip

SOURCE = Path(__file__).resolve().parents[3] / "../shared/paper"


def test_every_table_loads_with_its_declared_columns():
    for name, kind in SPECS.items():
        frame = paper.table(name)
        assert set(frame.columns) == {*kind.keys, *kind.values} | ({kind.average} - {None})
        assert not frame.duplicated(list(kind.keys)).any(), name
        assert paper.marks(name).shape == frame.shape == printed(name).shape


def test_coefficients_are_those_that_the_formula_uses():
    frame = paper.table("coefficients").set_index("variant")
    for name in VARIANTS:
        for symbol in ("alpha", "beta", "gamma", "delta"):
            value = getattr(get(name), symbol)
            if value is None:
                assert pd.isna(frame.loc[name, symbol])
            else:
                assert frame.loc[name, symbol] == value


@pytest.mark.skipif(not SOURCE.is_dir(), reason="the paper's source is not at hand")
@pytest.mark.parametrize("name", [name for name, kind in SPECS.items() if kind.label])
def test_every_number_stands_in_the_paper_s_source(name):
    """All numbers of each printed table, in order, parsed in another way than the CSVs were made."""
    text = next(SOURCE.glob("*.txt")).read_text(encoding="utf-8")
    part = text[text.index(f"\\label{{table:{SPECS[name].label}}}") :]
    part = part[part.index("\\midrule") : part.index("\\end{tabular}")]
    part = re.sub(
        r"\\(tablefootnote|cite|multicolumn|textbf\{(?:CIFAR|STL|ResNet|SwinT))[^&\n]*?\}",
        " ",
        part,
    )
    wanted = re.findall(r"-?\d+\.\d+", part)
    kind = SPECS[name]
    columns = [*kind.values, *([kind.average] if kind.average else [])]
    got = [
        cell
        for row in printed(name)[columns].to_numpy().tolist()
        for cell in row
        if re.fullmatch(r"-?\d+\.\d+", cell)
    ]
    assert got == wanted
    best = len(re.findall(r"\\ub\{|\\textbf\{(?=\d|Unn|Yes)", part))
    marks = paper.marks(name)[columns].to_numpy().ravel().tolist()
    assert (marks.count("best"), marks.count("second")) == (best, part.count("\\ux{"))


def test_methods_of_the_measured_tables():
    for name in ("models", "transformers", "datasets", "smoothing"):
        assert set(paper.table(name)["method"]) == set(METHODS)


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
