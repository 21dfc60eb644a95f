"""The paper's averages, deviations and marks follow from its cells; and the check can fail."""

import numpy as np
import pytest

from research.paper import recomputed as module
from research.paper.claims import claims
from research.paper.recomputed import population_deviation


def test_every_average_deviation_and_mark_was_checked():
    found = module.checks()
    counts = {what: sum(c.what == what for c in found) for what in {c.what for c in found}}
    # 14 + 21 + 14 + 7 rows with an average, 7 columns with Avg. and S.D.; 9 rows with a Δ.
    assert counts["average"] == 14 + 21 + 14 + 7 + 7
    assert counts["deviation"] == 7
    assert counts["difference"] == 9
    # Every cell of the four marked tables, the averages included, and the four bold candidates.
    assert counts["mark"] == 14 * 6 + 7 * 2 + 21 * 9 + 14 * 6 + 4


def test_where_the_print_disagrees():
    assert module.discrepancies() == []
    digit = {(c.table, c.row, c.column) for c in module.checks() if not c.exact}
    assert digit == {
        ("environments", "CIFAR10 · PyramidNet10", "gain"),
        ("environments", "CIFAR100 · PyramidNet10", "gain"),
        ("smoothing", "Scratch · T=sqrt(M)", "avg"),
        ("smoothing", "Transfer · csg", "avg"),
    }


@pytest.mark.parametrize(("column", "change"), [("GTS", 1.0), ("avg", 0.02)])
def test_a_wrong_cell_is_found(monkeypatch, column, change):
    original = module.table

    def spoilt(name):
        frame = original(name)
        if name == "datasets":
            frame.loc[0, column] += change
        return frame

    monkeypatch.setattr(module, "table", spoilt)
    assert any(c.table == "datasets" and c.what == "average" for c in module.discrepancies())


def test_a_wrong_mark_is_found(monkeypatch):
    original = module.marks

    def spoilt(name):
        frame = original(name)
        if name == "models":
            frame.loc[0, "ResNet50"] = "best"
        return frame

    monkeypatch.setattr(module, "marks", spoilt)
    (only,) = module.discrepancies()
    assert (only.what, only.row, only.printed, only.recomputed) == (
        "mark",
        "CIFAR10 · T=1",
        "best",
        "",
    )


def test_the_deviation_is_the_population_one():
    rows = module.table("environments").query("dataset != ''")
    printed = module.table("environments").set_index("model").loc["S.D."]
    for column in ("alpha", "beta", "accuracy", "alpha_bn", "beta_bn", "accuracy_bn", "gain"):
        values = rows[column].tolist()
        assert population_deviation(values) == pytest.approx(np.std(values))
        assert abs(np.std(values) - printed[column]) <= 0.01
        assert abs(np.std(values, ddof=1) - printed[column]) > 0.01


def test_claims_are_judged_by_the_cells():
    by_text = {claim.says: claim for claim in claims()}
    assert by_text["T = 1 improves with label smoothing"].verdict == "holds"
    smoothing = by_text["the proposed method decreases with label smoothing"]
    # Mean over GTS, CT, FLW, PET, DTD of plain T*, from scratch: 70.51 printed with smoothing.
    without = np.mean([87.26, 87.52, 53.54, 76.12, 42.29])
    assert f"base {70.506 - without:+.2f}" in smoothing.cells
    assert smoothing.verdict == "partly"
    assert by_text["α = 0.3191"].verdict == "does not hold"
