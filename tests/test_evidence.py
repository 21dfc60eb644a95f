"""The measured trainings: distances and means against NumPy, and the paper's tables as printed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tstar.evidence import (
    ACTIONS,
    FITS,
    OTHER,
    SCALES,
    Facts,
    Measured,
    coordinates,
    distance,
    expect,
    measured,
    weights,
)
from tstar.training import Training

SGD = Training("sgd", 0.1, 1000, 0.9, 64, 5e-4, scenario="scratch")
MINE = Facts(64, 10, SGD, samples=3200, parameters=10_000, domain="image", kind="convnet", norms="batch-norms")  # fmt: skip


def row(facts=MINE, plain=50.0, seeds=2, **gains):
    return Measured("atlas", "net", "data", facts, plain, gains or {"bn": 1.0}, seeds)


def test_coordinates_by_hand():
    expected = {
        "travel": 0.1 * 1000 / 0.1, "noise": 0.1 / 64 / 0.1, "passes": 1000 * 64 / 3200, "steps": 1000,
        "samples": 3200, "features": 64, "classes": 10, "parameters": 10_000,
    }  # fmt: skip
    assert coordinates(MINE) == pytest.approx({n: math.log(v) for n, v in expected.items()})
    adam = replace(MINE, training=Training("adamw", 1e-3, 100, batch_size=16), samples=None)
    found = coordinates(adam)
    assert found["travel"] == pytest.approx(math.log(0.1))
    assert found["noise"] == pytest.approx(math.log(1e-3 / 4))
    assert "passes" not in found
    absurd = replace(MINE, training=Training("adamw", 1e308, 10**9))
    assert all(map(math.isfinite, coordinates(absurd).values()))


def test_distance_is_the_root_of_the_mean_square_and_what_is_of_another_kind():
    assert distance(MINE, MINE) == 0
    wide = replace(MINE, num_features=64 * 8)
    step = math.log(8) / SCALES["features"]
    assert distance(MINE, wide) == pytest.approx(math.sqrt(step**2 / 8))
    for name, other in (("domain", "text"), ("kind", "mlp"), ("norms", "no norms"), ("widened", True)):  # fmt: skip
        assert distance(MINE, replace(MINE, **{name: other})) == pytest.approx(OTHER[name] ** 0.5)
        if name != "widened":  # what is not known is not held against it
            assert distance(MINE, replace(MINE, **{name: None})) == 0
    assert distance(replace(MINE, fits=True), replace(MINE, fits=False)) == OTHER["fits"] ** 0.5
    assert distance(MINE, replace(MINE, norms="frozen")) == 2.0


@pytest.mark.parametrize(
    "change", [{"optimizer": "adamw"}, {"scenario": "finetune"}, {"tuned": True}]
)
def test_what_is_never_compared(change):
    assert distance(MINE, replace(MINE, training=replace(SGD, **change))) == math.inf


def test_the_chance_of_fitting_is_the_rows():
    pytest.importorskip("pandas")
    from research.advising import fit_chances

    assert fit_chances(measured()) == pytest.approx(FITS, abs=0.01)
    odds = FITS[0] + FITS[1] * math.log(20) + FITS[2] * math.log(10_000 / 3200)
    assert MINE.fit_chance == pytest.approx(1 / (1 + math.exp(-odds)))
    assert replace(MINE, fits=True).fit_chance == 1
    for change in ({"training": replace(SGD, scenario="finetune")}, {"samples": None}):
        assert replace(MINE, **change).fit_chance is None


def test_a_training_that_will_not_fit_learns_from_those_that_did_not():
    assert MINE.fit_chance < 0.3
    rows = [row(replace(MINE, fits=fits)) for fits in (True, False)] + [row()]
    assert [r.facts.fits for _, r in weights(MINE, rows)] == [False, None]
    assert row(seeds=1) == Measured("atlas", "net", "data", MINE, 50.0, {"bn": 1.0})  # once
    longer = replace(MINE, training=replace(SGD, steps=10_000))
    assert len(weights(longer, rows)) == 3


def test_there_is_no_cliff():
    """A step more or less never changes a weight by much, at 5,000 steps or anywhere."""
    rows = measured()
    for steps in (100, 4_999, 20_000):
        near, next_ = (
            {id(r): w for w, r in weights(replace(MINE, training=replace(SGD, steps=s)), rows)}
            for s in (steps, steps + 1)
        )  # fmt: skip
        assert all(abs(near[key] - next_[key]) < 0.01 for key in near.keys() & next_.keys())


def test_what_is_far_counts_less_and_says_less():
    rows = [row(bn=4.0) for _ in range(10)]
    found = [
        expect(weights(replace(MINE, training=replace(SGD, steps=1000 * factor)), rows), "bn")
        for factor in (1, 10, 100)
    ]
    for near, far in itertools.pairwise(found):
        assert far.support < near.support
        assert 0 < far.mean < near.mean
        assert far.error > near.error
        assert far.high - far.low > near.high - near.low


def test_one_seed_counts_half_and_two_count_two_thirds():
    assert [w for w, _ in weights(MINE, [row(seeds=1), row(seeds=2)])] == pytest.approx([2 / 3, 0.5])  # fmt: skip


def test_the_mean_is_that_of_the_rows_and_of_a_prior_at_zero():
    gains = [3.0, -1.0, 40.0]
    found = expect([(0.5, row(bn=g)) for g in gains], "bn")
    held = np.clip(gains, -10, 10)
    mean = 0.5 * held.sum() / (1.5 + 0.5)
    variance = (0.5 * ((held - mean) ** 2).sum() + 0.5 * (25 + mean**2)) / 2
    assert found.mean == pytest.approx(mean)
    assert found.error == pytest.approx(math.sqrt(variance / 2))
    assert found.low < found.median < found.high
    nothing = expect([(0.5, row(rate=1.0))], "bn")
    assert (nothing.mean, nothing.support, nothing.rows) == (0.0, 0.0, ())


def test_the_range_of_many_rows_is_theirs():
    values = np.random.default_rng(0).normal(2, 3, 400)
    found = expect([(1.0, row(bn=float(v))) for v in values], "bn")
    assert (found.low, found.median, found.high) == pytest.approx(
        tuple(np.quantile(values, (0.1, 0.5, 0.9))), abs=0.15
    )


def test_a_plain_model_of_another_accuracy_counts_less_if_its_accuracy_is_known():
    far = replace(MINE, num_features=640)
    near, other = weights(MINE, [row(plain=90.0), row(far, plain=90.0)])[1], weights(MINE, [row(plain=90.0), row(far, plain=20.0)])[1]  # fmt: skip
    assert near[1].facts == other[1].facts == far
    assert other[0] < near[0] / 5


def test_the_source_of_an_expectation_is_said():
    text = replace(MINE, domain="text")
    rows = [(1.0, row(plain=12.0)), (0.9, row(text, plain=68.0)), (0.01, row(plain=99.0))]
    assert expect(rows, "bn").source == "4 runs: net; images, texts; plain accuracy 12–68 %"
    said = expect(rows, "bn").to_dict()
    assert [each["gain"] for each in said["trainings"]] == [1.0, 1.0]


def test_the_table_holds_every_source():
    rows = measured()
    counts = {s: sum(r.source == s for r in rows) for s in {r.source for r in rows}}
    assert counts["paper"] == 36
    assert counts["atlas"] > 500
    assert counts["long runs"] > 10
    assert all(set(r.gains) <= set(ACTIONS) for r in rows)
    assert all(math.isfinite(g) for r in rows for g in r.gains.values())
    assert all(r.facts.domain and 0 <= r.plain <= 100 for r in rows)


def test_the_independent_rows_are_those_that_research_has():
    pytest.importorskip("pandas")
    from research.advising import independent

    found = [r for r in measured() if r.source == "independent"]
    assert found == [Measured.from_row(each) for each in independent()]
    assert found[0].gains["decay"] == pytest.approx((31.6 + 31.4 - 22.8 - 26.4) / 2)


def test_the_papers_rows_are_its_printed_numbers():
    """ResNet50: 49.18 on CIFAR-100 plain, 57.93 with cn; SwinT fine-tuned on Flowers102."""
    found = {(r.network, r.dataset, r.facts.pretrained): r for r in measured() if r.source == "paper"}  # fmt: skip
    first = found["ResNet50", "CIFAR100", False]
    assert (first.plain, first.seeds) == (49.18, 1)
    assert first.gains == pytest.approx({"paper_cn": 57.93 - 49.18, "paper_csgcn": 57.89 - 49.18})
    t = first.facts.training
    assert (t.lr, t.steps, t.batch_size, t.weight_decay) == (0.1, 200 * 391, 128, 5e-4)
    assert (first.facts.num_features, first.facts.num_classes) == (2048, 100)
    swin = found["SwinT", "FLW", True]
    assert swin.gains["paper_csgcn"] == pytest.approx(90.21 - 80.29)
    assert (swin.facts.training.lr, swin.facts.training.steps) == (0.01, 50 * 8)
    assert found["ViT-B/16", "CT", False].gains["paper_csgcn"] == pytest.approx(5.03 - 50.38)


def test_a_coordinate_that_is_far_counts_by_itself_too():
    """Four spreads in one coordinate: 16 in the mean, and half of what exceeds two spreads."""
    far = replace(MINE, num_features=round(64 * math.exp(4 * SCALES["features"])))
    count = len(coordinates(MINE))
    assert distance(MINE, far) ** 2 == pytest.approx(16 / count + (16 - 4) / 2, rel=1e-3)


def test_a_wide_spread_of_plain_accuracies_is_not_said():
    for highest, said in ((70.0, True), (70.5, False)):
        found = expect([(1.0, row(plain=10.0)), (1.0, row(plain=highest))], "bn")
        assert ("plain accuracy" in found.source) == said
