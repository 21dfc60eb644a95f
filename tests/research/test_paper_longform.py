"""The long form: one row per measured cell, with the temperature behind it."""

import pytest

from research.paper.longform import records as long_form
from tstar import temperature
from tstar.formula import VARIANTS
from tstar.lab import paper
from tstar.lab.paper.catalogue import SPECS


@pytest.fixture(scope="module")
def records():
    return long_form()


def test_every_cell_once(records):
    assert len(records) == sum(
        len(paper.table(n)) * len(SPECS[n].values)
        for n in ("models", "transformers", "datasets", "smoothing")
    )
    assert not records.duplicated(["table", "block", "model", "dataset", "method"]).any()
    total = sum(
        paper.table(n)[list(SPECS[n].values)].to_numpy().sum()
        for n in ("models", "transformers", "datasets", "smoothing")
    )
    assert records["accuracy"].sum() == pytest.approx(total)


def test_isic_has_the_paper_s_temperature(records):
    row = records.query(
        "table == 'datasets' and block == 'ResNet50 FT' and dataset == 'ISIC' and method == 'csgcn'"
    )
    assert row["temperature"].item() == pytest.approx(24.88, abs=0.01)
    assert row["assumed"].item() == ""


def test_temperatures_are_the_formula_s(records):
    for row in records[records["method"].isin(VARIANTS)].to_dict("records"):
        assert row["temperature"] == temperature(
            row["num_features"], row["num_classes"], row["csg"], variant=row["method"]
        )
    assert (records.query("method == 'T=1'")["temperature"] == 1).all()
    roots = records.query("method == 'T=sqrt(M)'")
    assert (roots["temperature"] ** 2 - roots["num_features"]).abs().max() < 1e-9
    assert records.query("method == 'Insert LN'")["temperature"].isna().all()


def test_what_is_ours_is_marked(records):
    ours = records[records["assumed"] != ""]
    assert set(ours["table"]) == {"models"}
    csg = ours[ours["assumed"].str.startswith("csg")]
    assert set(csg["dataset"]) == {"CIFAR10"}
    assert set(csg["method"]) == {"csg", "csgcn"}
    width = ours[ours["assumed"].str.contains("RegNetY")]
    assert set(width["model"]) == {"RegNet-8GF"}
    assert set(width["method"]) == {*VARIANTS, "T=sqrt(M)"}
