"""The analysis of the paper's tables: recomputed here from the cells in a few lines."""

import json

import pytest

from research.paper import analysis
from research.paper.pages import pages
from tstar.formula import VARIANTS
from tstar.lab import paper


def finetune_by_hand():
    frame = paper.table("datasets")
    a = (
        frame[frame["scenario"] == "ResNet50 FT"]
        .set_index("method")
        .drop(columns=["scenario", "avg"])
    )
    b = frame[frame["scenario"] == "SwinT FT"].set_index("method").drop(columns=["scenario", "avg"])
    return (a + b) / 2


def test_data_sets_are_the_unit():
    scratch, finetune = analysis.by_dataset("scratch"), analysis.by_dataset("finetune")
    assert len(scratch) == 10
    assert len(finetune) == 8
    hand = finetune_by_hand()
    for method in hand.index:
        for column in hand.columns:
            assert finetune.loc[column, method] == pytest.approx(hand.loc[method, column])
    # Caltech101 from scratch: ResNet50, ViT-B/16 and SwinT.
    assert scratch.loc["CT", "cn"] == pytest.approx((90.59 + 55.34 + 74.46) / 3)
    assert len(analysis.cells("scratch")) == 20


def test_the_footnotes_change_two_cells_only():
    plain, noted = analysis.cells("scratch"), analysis.cells("scratch", footnotes=True)
    changed = plain.to_numpy() != noted.to_numpy()
    assert changed.sum() == 2
    assert sorted(noted.to_numpy()[changed]) == [53.61, 73.52]


def test_wins_against_the_default():
    hand = finetune_by_hand()
    results = {c.method: c for c in analysis.against_default(analysis.by_dataset("finetune"))}
    for method, comparison in results.items():
        gain = hand.loc[method] - hand.loc["T=1"]
        assert comparison.result.wins == (gain > 1e-9).sum()
        assert comparison.result.mean == pytest.approx(gain.mean())
        assert set(comparison.lost_on) == set(gain.index[gain < -1e-9])
        assert comparison.holm_p >= comparison.result.wilcoxon_p


def test_the_default_variant_is_recomputed_from_the_tables():
    stored = json.loads(analysis.DEFAULT_VARIANT.read_text(encoding="utf-8"))
    assert stored == analysis.default_variant()


def test_the_default_variant_has_the_best_mean():
    chosen = analysis.default_variant()
    hand = finetune_by_hand().mean(axis=1)
    assert chosen["finetune"]["variant"] == hand[list(VARIANTS)].idxmax() == "csgcn"
    assert f"{hand['csgcn']:.2f} % against {hand['T=1']:.2f} %" in chosen["finetune"]["evidence"]
    assert chosen["without_csg"]["finetune"]["variant"] == hand[["base", "cn"]].idxmax() == "cn"
    assert chosen["scratch"]["variant"] == "cn"
    for scenario in analysis.SCENARIOS:
        assert "csg" not in chosen["without_csg"][scenario]["variant"]


def test_leaving_a_data_set_out():
    scores = analysis.by_dataset("finetune")
    winners = analysis.stability(scores)
    assert len(winners) == len(scores)
    spoilt = scores.copy()
    spoilt.loc["FLW", "base"] = 1000.0
    winners = dict(zip(spoilt.index, analysis.stability(spoilt), strict=True))
    assert winners.pop("FLW") != "base"
    assert set(winners.values()) == {"base"}


def test_pages_hold_the_numbers():
    text = pages()
    assert set(text) == {"discrepancies.md", "analysis.md", "temperatures.md"}
    assert "python -m research.paper.analysis" in text["analysis.md"]
    assert f"{analysis.by_dataset('scratch')['cn'].mean():.2f}" in text["analysis.md"]
    assert "24.89" in text["temperatures.md"]
    assert all("nan" not in page for page in text.values())
