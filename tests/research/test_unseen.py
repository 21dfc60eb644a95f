"""The trainings that the advice had not seen: as designed, and run as predicted."""

import pytest

pytest.importorskip("pandas")
from research import unseen


def test_the_design():
    made = unseen.drawn()
    assert [c.plain.config.optimizer for c in made] == ["sgd", "adamw"] * 12
    for condition in made:
        spec = condition.plain
        assert 1000 <= spec.config.steps <= 8000
        assert spec.trunk_features is None  # a native output layer
        assert (spec.norm, spec.temperature, spec.config.head_lr) == ("none", 1.0, 1.0)
    assert unseen.drawn() == made


def test_predictions_are_of_these_trainings():
    rows = unseen.predictions()
    for condition in unseen.drawn():
        row, c = rows.loc[condition.index], condition.plain.config
        told = (row["family"], row["dataset"], row["M"], row["steps"], row["usual lr"])
        spec = condition.plain
        assert told == (condition.family, spec.dataset, spec.num_features, c.steps, c.lr)


def test_the_advice_is_run_as_it_was_written_down():
    rows = unseen.predictions()
    for condition in unseen.drawn():
        row, spec = rows.loc[condition.index], condition.plain
        run = unseen.apply(spec, row)
        assert (run == spec) == (row["action"] == "leave")
        assert (run.norm == "batch") == row["action"].startswith("bn")
        assert run.config.lr == pytest.approx(row["lr"])
        assert run.temperature == pytest.approx(row["temperature"], rel=0.005)
