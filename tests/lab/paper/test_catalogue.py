"""What the paper's tables hold, and where they are printed."""

import re
from pathlib import Path

import pandas as pd
import pytest

from tstar.formula import VARIANTS, get
from tstar.lab import paper
from tstar.lab.paper.catalogue import METHODS, SPECS
from tstar.lab.paper.loading import printed

SOURCE = Path(__file__).resolve().parents[3] / "../shared/paper"


def test_every_table_loads_with_its_declared_columns():
    assert set(paper.tables()) == set(SPECS)
    for name, kind in SPECS.items():
        frame = paper.table(name)
        assert set(frame.columns) == {*kind.keys, *kind.values} | ({kind.average} - {None})
        assert not frame.duplicated(list(kind.keys)).any(), name
        assert paper.marks(name).shape == frame.shape == printed(name).shape


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("characteristics", 11),
        ("environments", 11),
        ("corrections", 7),
        ("coefficients", 4),
        ("models", 14),
        ("transformers", 7),
        ("datasets", 21),
        ("smoothing", 14),
        ("footnotes", 2),
    ],
)
def test_one_row_a_printed_row(name, rows):
    assert len(paper.table(name)) == rows


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
