"""The most similar trainings: distances against a few lines of NumPy, and what is said of them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tstar.formula import similar
from tstar.formula.training import Training

SGD = Training("sgd", lr=0.1, steps=1000, momentum=0.9, batch_size=64)
SCALES = {"travel": 2.0, "noise": 1.5, "passes": 1.0, "features": 1.4, "classes": 1.2}


def row(gain, family="sgd", norms="batch-norms", **shift):
    mine = similar.coordinates(SGD, 64, 10, 3200)
    moved = {name: value + shift.get(name, 0.0) for name, value in mine.items()}
    return {
        "optimizer": family,
        "norms": norms,
        "coordinates": moved,
        "gains": {"bn": gain},
        "keys": ["k"],
    }


def test_coordinates_have_no_units():
    mine = similar.coordinates(SGD, 64, 10, 3200)
    expected = {
        "travel": 0.1 * 1000 * 0.5 / 0.1,
        "noise": 0.1 / (64 * 0.1),
        "passes": 1000 * 64 / 3200,
        "steps": 1000,
        "features": 64,
        "classes": 10,
    }
    assert mine == pytest.approx({name: math.log(value) for name, value in expected.items()})
    # SGD with momentum μ at lr·(1 − μ) is SGD at lr without: the same training, the same place.
    same = Training("sgd", lr=1.0, steps=1000, momentum=0.0, batch_size=64)
    assert similar.coordinates(same, 64, 10, 3200) == pytest.approx(mine)


def test_adam_does_not_know_momentum():
    adam = Training("adamw", lr=1e-3, steps=100, batch_size=16)
    mine = similar.coordinates(adam, 64, None, None)
    assert set(mine) == {"travel", "noise", "steps", "features"}
    assert mine["noise"] == pytest.approx(math.log(1e-3 / 4))
    assert mine["travel"] == pytest.approx(math.log(0.05))


def test_the_distance_is_the_root_of_the_mean_square():
    a = {"travel": 1.0, "noise": 2.0, "classes": 3.0}
    b = {"travel": 2.0, "noise": 5.0, "features": 1.0}
    assert similar.distance(a, b, SCALES) == pytest.approx(math.sqrt((0.5**2 + 2.0**2) / 2))
    assert similar.distance(a, {}, SCALES) == math.inf


def test_other_optimizers_are_not_compared_and_other_norms_are_further_off():
    rows = [row(1.0, norms="layer-norms"), row(2.0, travel=1.0), row(3.0, family="adam")]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    near = similar.ranked(mine, "sgd", "batch-norms", rows, SCALES)
    assert [r["gains"]["bn"] for _, r in near] == [2.0, 1.0]
    assert near[1][0] == 1.0


def test_an_expectation_counts_what_it_is_given():
    gains = np.linspace(-4, 6, 41)
    rows = [row(g, travel=0.01 * i) for i, g in enumerate(gains)]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    near = similar.ranked(mine, "sgd", "batch-norms", rows, SCALES)
    found = similar.expected(near, "bn", noise=2.0, widening=1.0)
    taken = gains[:20]
    assert found.trainings == 20
    assert found.median == pytest.approx(np.median(taken))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(taken, [0.1, 0.9])))
    assert (found.helped, found.harmed) == ((taken > 2).sum(), (taken < -2).sum())
    wide = similar.expected(near, "bn", noise=2.0, widening=2.0)
    assert wide.high - wide.median == pytest.approx(2 * (found.high - found.median))
    assert not found.far
    assert f"{found.trainings} most similar" in str(found)


def test_far_from_everything_is_said():
    rows = [row(1.0, travel=10.0, noise=10.0)]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    found = similar.expected(similar.ranked(mine, "sgd", None, rows, SCALES), "bn", 1.0, 1.0)
    assert found.far


def test_one_number_beyond_all_others_is_far_too():
    rows = [row(1.0)["coordinates"], row(1.0, travel=2.0)["coordinates"]]
    inside = similar.coordinates(SGD, 64, 10, 3200)
    assert similar.outside(inside, rows, SCALES) == 0
    longer = {**inside, "travel": inside["travel"] + 2.0 + 3 * SCALES["travel"]}
    assert similar.outside(longer, rows, SCALES) == pytest.approx(3)
    shorter = {**inside, "passes": inside["passes"] - 1.0}
    assert similar.outside(shorter, rows, SCALES) == pytest.approx(1 / SCALES["passes"])


def test_a_training_of_200_epochs_is_like_nothing_that_was_measured():
    long = Training("sgd", 0.1, 500_000, 0.9, batch_size=128)
    assert similar.nearest(long, 512, 10, 50_000, "batch-norms", "faster").far
    short = Training("sgd", 0.1, 500, 0.9, batch_size=64)
    assert not similar.nearest(short, 512, 10, 2_000, "batch-norms", "faster").far


def test_a_recipe_that_was_never_run_gives_no_expectation():
    mine = similar.coordinates(SGD, 64, 10, 3200)
    assert similar.expected(similar.ranked(mine, "sgd", None, [row(1.0)], SCALES), "other", 1, 1) is None  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.83, 1.0])
def test_quantiles_are_numpys(share):
    values = [3.0, -1.0, 2.5, 7.0, 0.0]
    assert similar.quantile(values, share) == pytest.approx(np.quantile(values, share))


def test_an_absurd_learning_rate_is_a_finite_distance_away():
    training = Training.of(optimizer="sgd", lr=1e308, steps=256, batch_size=4)
    assert all(map(math.isfinite, similar.coordinates(training, 64, 10, 1000).values()))


def test_a_mean_within_its_error_is_no_gain():
    assert similar.surely_positive([1.0, 2.0, 3.0])
    assert not similar.surely_positive([-3.0, 4.0])  # 0.5 ± 3.5
    assert similar.surely_positive([0.1])
    assert not similar.surely_positive([0.0])
    # Mean 1, standard error exactly 1: not above it.
    assert not similar.surely_positive([0.0, 2.0])


def test_one_rescued_training_does_not_speak_for_all():
    near = [(0.1, {"gains": {"bn": gain}}) for gain in [80.0, *[-1.0] * 9]]
    assert not similar.expected(
        near, "bn", 1.0, 1.0
    ).gained  # 0.1 ± 1.1 at ten points, 7.1 ± 8.1 at eighty
    near = [(0.1, {"gains": {"bn": gain}}) for gain in [80.0, *[0.5] * 9]]
    assert similar.expected(near, "bn", 1.0, 1.0).gained


@pytest.mark.parametrize(
    ("gains", "gained"),
    [
        # two of 10 and two of −c: (10 − c)/2 above its error (10 + c)/√12 where c < 2.68
        ([80.0, 80.0, -2.67, -2.67], True),
        ([80.0, 80.0, -2.69, -2.69], False),
        # one of −10 and five of c: (5c − 10)/6 above its error (c + 10)/6 where c > 5
        ([-80.0, *[5.01] * 5], True),
        ([-80.0, *[4.99] * 5], False),
    ],
)
def test_a_gain_or_loss_counts_ten_points_at_most(gains, gained):
    near = [(0.1, {"gains": {"bn": gain}}) for gain in gains]
    assert similar.expected(near, "bn", 1.0, 1.0).gained is gained


def test_long_trainings_are_compared_with_long_ones_alone():
    def row(steps, gain):
        return {
            "optimizer": "sgd",
            "norms": "x",
            "coordinates": {"steps": math.log(steps)},
            "gains": {"bn": gain},
        }

    known = {
        "rows": [row(500, 3.0), row(10_000, -1.0)],
        "scales": {"steps": 1.0},
        "noise": 1.0,
        "widening": 1.0,
    }
    for steps, gain in ((700, 3.0), (4_999, 3.0), (5_000, -1.0), (20_000, -1.0)):
        mine = similar.coordinates(Training("sgd", 0.1, steps), None, None, None)
        assert similar.among(known, mine, "sgd", None, "bn").median == gain


def known(rows, noise=1.0, widening=1.0):
    return {"rows": rows, "scales": SCALES, "noise": noise, "widening": widening}


@pytest.mark.parametrize(
    ("gained", "far", "supports"),
    [(True, False, True), (True, True, False), (False, False, False), (False, True, False)],
)
def test_evidence_supports_a_recipe_where_near_trainings_gained(gained, far, supports):
    found = similar.Expectation(0.0, 0.0, 0.0, 0, 0, 0, 0.0, far=far, gained=gained, rows=())
    assert found.supports is supports


def test_where_nothing_can_be_compared_nothing_is_expected():
    mine = similar.coordinates(SGD, 64, 10, 3200)
    for rows in ([], [row(5.0, family="adam")], [row(None)]):
        found = similar.among(known(rows), mine, "sgd", None, "bn")
        assert (found.trainings, found.helped, found.harmed, found.rows) == (0, 0, 0, ())
        assert (found.median, found.low, found.high) == (0, 0, 0)
        assert found.distance == 99  # beyond anything, and yet a number of JSON
        assert found.far
        assert not found.gained


def test_an_expectation_in_words():
    found = similar.Expectation(1.25, -0.5, 3.0, 9, 2, 20, 0.3, far=False, gained=True, rows=())
    assert str(found) == (
        "Of the 20 most similar trainings of the atlas 9 gained and 2 lost more than noise; median +1.2 points over the "
        "plain model, four of five between -0.5 and +3.0."
    )


def test_noise_is_neither_gain_nor_loss():
    near = [(0.1, {"gains": {"bn": gain}}) for gain in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    found = similar.expected(near, "bn", noise=1.0, widening=1.0)
    assert (found.helped, found.harmed) == (1, 1)


def test_the_rows_are_the_nearest_with_their_distances():
    rows = [row(2.0, travel=1.0), row(None, travel=0.1), row(1.0, travel=0.5)]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    found = similar.among(known(rows), mine, "sgd", "batch-norms", "bn")
    five = math.sqrt(
        len(SCALES)
    )  # of the coordinates only "travel" differs, and "steps" has no scale
    assert [each["gains"]["bn"] for each in found.rows] == [1.0, 2.0]
    assert [each["distance"] for each in found.rows] == [
        round(0.25 / five, 3),
        round(0.5 / five, 3),
    ]
    assert [each["keys"] for each in found.rows] == [["k"], ["k"]]
    assert found.distance == pytest.approx(0.25 / five)


def test_where_far_begins():
    for away, far in ((1.5, False), (1.5 + 1e-9, True)):
        assert similar.expected([(away, row(1.0))], "bn", 1.0, 1.0).far is far
    # One coordinate beyond the others makes a training far, though it is near on the whole.
    rows = [row(1.0, classes=shift) for shift in (0.0, 0.1)]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    for deviations, far in ((1.5, False), (1.5 + 1e-6, True)):
        moved = {**mine, "classes": mine["classes"] - deviations * SCALES["classes"] + 1e-9}
        found = similar.among(known(rows), moved, "sgd", None, "bn")
        assert found.far is far
        assert found.distance == pytest.approx(deviations, abs=1e-5)


def test_what_is_not_known_on_both_sides_is_not_compared():
    rows = [{"travel": 1.0}, {"noise": 1.0}]
    assert similar.outside({"noise": 9.0, "strange": 99.0}, rows, SCALES) == pytest.approx(8 / 1.5)
    assert similar.outside({"passes": 9.0}, rows, SCALES) == 0
    assert similar.distance({"strange": 1.0}, {"strange": 5.0}, SCALES) == math.inf


def test_a_momentum_next_to_one_is_a_finite_factor():
    near_one = Training("sgd", lr=0.1, steps=10, momentum=0.99999, batch_size=1)
    mine = similar.coordinates(near_one, None, None, None)
    assert mine["noise"] == pytest.approx(math.log(0.1 * 1000))
    assert mine["travel"] == pytest.approx(math.log(0.1 * 10 * 0.5 * 1000))


def test_a_constant_rate_travels_twice_as_far():
    steady = Training("adam", lr=0.1, steps=10, rate_factor=1.0)
    falling = Training("adam", lr=0.1, steps=10)
    a, b = (similar.coordinates(t, None, None, None)["travel"] for t in (steady, falling))
    assert a - b == pytest.approx(math.log(2))


def test_what_each_coordinate_needs():
    def names(*given, **training):
        return set(similar.coordinates(Training("sgd", **training), *given))

    assert names(None, None, None) == set()
    assert names(None, None, None, lr=0.1) == set()
    assert names(None, None, 100, steps=5) == {"steps"}
    assert names(None, None, 100, batch_size=5) == set()
    assert names(None, None, None, lr=0.1, batch_size=5) == {"noise"}
    assert names(None, None, 100, steps=5, batch_size=5) == {"steps", "passes"}
    assert names(64, None, None) == {"features"}
    assert names(None, 10, None) == {"classes"}


def test_fine_tuning_is_compared_with_fine_tuning_alone():
    short = {"lr": 1e-3, "steps": 150, "batch_size": 32}
    tuned = Training("adamw", **short, scenario="finetune")
    found = similar.nearest(tuned, 384, 10, 1000, "layer-norms", "faster")
    assert found.trainings > 0
    assert {each["norms"] for each in found.rows} == {similar.PRETRAINED}
    scratch = similar.nearest(Training("adamw", **short), 384, 10, 1000, "layer-norms", "faster")
    assert similar.PRETRAINED not in {each["norms"] for each in scratch.rows}


def test_without_an_optimizer_all_families_are_compared():
    rows = [row(1.0), row(2.0, family="adam")]
    mine = similar.coordinates(SGD, 64, 10, 3200)
    assert len(similar.ranked(mine, None, None, rows, SCALES)) == 2


def test_the_choices_that_ship():
    for family in ("sgd", "adam"):
        entry = similar.choice(Training(family))
        assert entry == similar.choice(Training(family, scenario="scratch"))
        assert (entry["optimizer"], entry["scenario"], entry["tuned"]) == (family, "scratch", False)
        assert entry["low"] <= entry["gain"] <= entry["high"]
        ran = [r for r in similar.stored()["rows"] if r["gains"].get(entry["recipe"]) is not None]
        assert 0 < entry["trainings"] <= len(ran)
    assert similar.choice(Training("sgd", scenario="finetune"))["scenario"] == "finetune"
    assert similar.choice(Training("lion")) == {"recipe": similar.LEAVE, "trainings": 0}
    assert similar.choice(Training())["recipe"] == similar.LEAVE


def test_a_tuned_rate_is_compared_with_tuned_ones_and_stays():
    tuned = replace(SGD, tuned=True)
    assert similar.choice(tuned)["tuned"] is True
    assert similar.rate_of(tuned) == 1.0
    usual = {row["condition"]: row for row in similar.stored()["rows"]}
    there = similar.stored()["tuned"]["rows"]
    found = similar.nearest(tuned, 64, 10, 3200, "batch-norms", "bn")
    assert {row["condition"] for row in found.rows} <= {row["condition"] for row in there}
    # A search never chose a worse validation accuracy, and in most conditions another rate.
    other = [row for row in there if row["lr"] != usual[row["condition"]]["lr"]]
    assert len(other) > len(there) / 2
    assert all(set(row["gains"]) <= {"bn"} for row in there)


def test_a_recipe_and_its_rate(monkeypatch):
    choices = [
        {"optimizer": "sgd", "scenario": "scratch", "tuned": True, "recipe": "bn"},
        {"optimizer": "sgd", "scenario": "scratch", "tuned": False, "recipe": "faster"},
        {"optimizer": "sgd", "scenario": "finetune", "tuned": False, "recipe": "bn"},
        {"optimizer": "adam", "scenario": "scratch", "tuned": False, "recipe": "leave"},
    ]
    monkeypatch.setattr(similar, "stored", lambda: {"choices": choices})

    def favored(training):
        return similar.recipe_of(training), similar.rate_of(training)

    assert favored(Training("sgd")) == ("faster", 3.0)
    assert favored(Training("sgd", tuned=True)) == ("bn", 1.0)
    assert favored(Training("sgd", scenario="finetune")) == ("bn", 1.0)
    assert favored(Training("adam")) == ("bn", 1.0)
    assert favored(Training()) == ("bn", 1.0)


def test_how_long_the_similar_trainings_were_is_told():
    rows = ({"steps": 3169}, {"steps": 181}, {"steps": 500})
    found = similar.Expectation(1.0, 0.0, 2.0, 2, 1, 3, 0.3, far=False, gained=True, rows=rows)
    assert str(found).startswith("Of the 3 most similar trainings of the atlas (181 to 3,169 steps) 2 gained and 1 lost")  # fmt: skip


def test_fine_tunings_of_networks_with_other_norms_are_no_evidence():
    mine = {"steps": 5.0}
    rows = [
        {**row(gain), "norms": similar.PRETRAINED, "inside": inside}
        for gain, inside in ((9.0, "layer-norms"), (-9.0, "batch-norms"))
    ]
    for inside, expected in (("layer-norms", [9.0]), ("batch-norms", [-9.0]), ("no norms", [])):
        near = similar.ranked(mine, "sgd", similar.PRETRAINED, rows, SCALES, inside)
        assert [found["gains"]["bn"] for _, found in near] == expected
    assert len(similar.ranked(mine, "sgd", similar.PRETRAINED, rows, SCALES)) == 2


def test_a_tuned_fine_tuning_with_adamw_is_left_alone_with_batch_norms_inside():
    """MobileNetV2 lost there, MiniLM gained."""
    told = Training("adamw", 1e-3, 150, batch_size=16, scenario="finetune", tuned=True)
    assert not similar.nearest(told, 1280, 43, 2_000, "batch-norms", "bn").supports
    assert similar.nearest(told, 384, 77, 2_000, "layer-norms", "bn").supports
