"""What a check says, from accuracies that are known."""

from dataclasses import replace

import pytest

import tstar.training.running
from tests.checking.test_trial import QUICK, make_model
from tstar.checking import check
from tstar.training import Result


@pytest.fixture
def known(digits, monkeypatch):
    """A check of known accuracies: right answers of 144 by T (None: plain), one number per seed, of validation and test."""

    def make(answers, faster=(70, 70), **options):
        def train(recipe, parts, config, *, seed, progress, checkpoint):
            heads = [m for m in recipe.model.modules() if isinstance(m, tstar.TemperedHead)]
            T = float(heads[0].temperature) if heads else None
            val, test = answers.get(T, (faster, faster))
            return Result("done", val_accuracy=val[seed] / 144, test_accuracy=test[seed] / 144)

        monkeypatch.setattr(tstar.training.running, "train", train)
        temperatures = [T for T in answers if T is not None]
        return check(make_model, digits, temperatures=temperatures, config=QUICK, **options)

    return make


def test_each_gain_stands_beside_its_own_temperature(known):
    answers = {None: ([72, 72],) * 2, 0.5: ([60, 60], [108, 108]), 8.0: ([100, 100], [132, 132])}
    result = known(answers, faster=(36, 36))
    assert (result.formula.temperature, result.best.temperature) == (0.5, 8.0)
    T = f"{result.temperature:.3g}"
    assert result.sentence.startswith(
        f"Your model as it is gives 50.0 % on test data. At your rate the formula points at T = {T} (nearest in this "
        "check: 0.5): 75.0 %, 25.0 points above your model. Validation accuracy peaks at T = 8: 91.7 %, 16.7 points "
        "above that. With BatchNorm, "
    )
    assert "3 times the rate it is 25.0 %, 25.0 points below your model." in result.sentence
    assert "within the noise" not in result.sentence


def test_a_peak_at_the_formula_noise_and_no_difference_are_said(known):
    same = [72, 72]
    answers = {None: (same, same), 0.5: ([120, 120], same), 8.0: ([60, 60], same)}
    there = known(answers, faster=same)
    assert "50.0 %, the same as your model. Validation accuracy peaks there." in there.sentence
    assert "times the rate it is 50.0 %, the same as your model." in there.sentence
    misled = known({None: (same, same), 0.5: ([40, 40], [80, 64]), 8.0: ([110, 110], [66, 70])})
    assert "50.0 %, the same as your model." in misled.sentence
    assert "T = 8: 47.2 %, 2.8 points below that, within the noise." in misled.sentence


def test_a_peak_is_named_only_where_validation_tells_the_temperatures_apart(known):
    """50 samples and two seeds: 100 answers, on which 10 points are noise and 30 are not."""
    plain = {None: ([72, 72],) * 2}
    for low, high, apart in ((72, 72, False), (65, 79, False), (50, 94, True)):
        result = known({**plain, 1.0: ([low] * 2,) * 2, 4.0: ([high] * 2,) * 2})
        assert result.told_apart is result.to_dict()["told_apart"] is apart
        assert ("← peak" in str(result)) is apart
        unsaid = "Validation accuracy, on 50 samples, does not tell the temperatures apart."
        assert (unsaid in result.sentence) is not apart
        assert ("peaks" in result.sentence.partition("a short look")[0]) is apart
    one = known({**plain, 1.0: ([94, 94],) * 2})
    assert "Validation accuracy" not in one.sentence  # there is nothing to tell apart


def test_gains_within_the_error_of_the_test_samples_are_called_noise(known):
    """The same answers at each seed, so that the seeds alone would call any difference real."""
    for right, noise in ((79, True), (101, False)):
        result = known({None: ([72, 72],) * 2, 0.5: ([right, right],) * 2}, faster=(65, 65))
        gain = f"{100 * (right - 72) / 144:.1f} points above your model"
        assert (f"{gain}, within the noise. " in result.sentence) is noise
        assert f"{gain}{', within the noise' * noise}. " in result.sentence
        assert "4.9 points below your model, within the noise. " in result.sentence
        assert "samples only" not in result.sentence


def test_of_equal_temperatures_the_lowest_is_the_peak(known):
    """Two seeds have 42 of 288 right at each T, but the means round apart."""
    answers = {T: ([a, 42 - a],) * 2 for T, a in ((1.0, 1), (4.0, 2), (8.0, 5))}
    result = known({None: ([20, 20],) * 2, **answers})
    assert result.best.temperature == 1.0


def test_the_row_of_the_advice_is_marked_and_the_plain_one_where_it_is_to_leave(known):
    result = known({T: ([72, 72],) * 2 for T in (None, 0.5, 8.0)})
    advice = replace(result.advice, leave=False)
    cases = {
        "plain": replace(advice, leave=True),
        "0.5": replace(advice, lr_factor=1.0),
        str(result.rows[-1]): replace(advice, lr_factor=3.0),
    }
    for name, given in cases.items():
        told = replace(result, advice=given)
        marked = [line for line in str(told).splitlines() if line.endswith("← advised")]
        assert [line.split("  ")[0].strip() for line in map(str.strip, marked)] == [name]
        assert told.sentence == result.sentence  # what was tried is said all the same
