"""Regret and gain, by hand; what is not matched is not compared."""

import pandas as pd
import pytest

from tstar.lab.curves import conditions, judge

GRID = (1.0, 4.0, 16.0)


def run(T, seed, test, norm="batch", val=None, **facts):
    base = {"dataset": "a", "model": "m", "num_features": 64, "num_classes": 10, "lr": 0.1}
    base |= {"method": "fixed", "norm": norm, "temperature": T, "seed": seed, "status": "done"}
    return base | {"test_accuracy": test, "val_accuracy": test if val is None else val} | facts


def one(rows):
    (condition,) = conditions(pd.DataFrame(rows))
    return condition


def test_norm_method_and_t_are_not_of_the_condition():
    rows = [run(T, 0, 0.5) for T in GRID] + [run(1.0, 0, 0.4, "none")]
    rows += [run(None, 0, 0.3, "none", method="insert-ln")]
    condition = one(rows)
    assert condition.plain() == 0.4
    assert condition.curve().by_seed(1.0) == {0: 0.5}
    assert condition.methods["insert-ln"] == {0: {"val": 0.3, "test": 0.3}}
    assert condition.curve("none").temperatures.tolist() == [1.0]


@pytest.mark.parametrize(
    "fact",
    ["lr", "head_lr", "weight_decay", "label_noise", "samples", "depth", "trunk_features"],
)
def test_every_fact_of_the_training_is_of_the_condition(fact):
    rows = [run(T, 0, 0.5, **{fact: value}) for T in GRID for value in (0.25, 0.5)]
    assert len(conditions(pd.DataFrame(rows))) == 2


def test_a_later_column_that_is_empty_in_old_runs_does_not_split_them():
    rows = [run(T, 0, 0.5) for T in GRID] + [run(T, 1, 0.7, label_noise=0.0) for T in GRID]
    assert one(rows).curve().seeds == (0, 1)


def test_judged_by_hand():
    rows = [
        run(T, 0, a, val=v) for T, a, v in zip(GRID, (0.5, 0.8, 0.7), (0.1, 0.2, 0.3), strict=True)
    ]
    rows += [run(1.0, 0, 0.6, "none")]
    found = judge(one(rows), 8.0)
    at = 0.75  # half way between 4 and 16 in ln T
    assert found.accuracy == pytest.approx(at)
    assert (found.best_temperature, found.best) == (16.0, 0.7)  # chosen by validation
    assert found.regret == pytest.approx(100 * (0.7 - at))
    assert found.gain == pytest.approx(100 * (at - 0.6))
    assert found.gain_bn == pytest.approx(100 * (at - 0.5))
    assert not found.extrapolated
    assert judge(one(rows), 32.0).extrapolated
    assert judge(one(rows), 8.0, norm="layer") is None


def test_seeds_are_matched():
    """Seed 1 has no plain run, and half a grid: it moves neither regret nor gain."""
    rows = [run(T, 0, a) for T, a in zip(GRID, (0.5, 0.8, 0.7), strict=True)] + [
        run(1.0, 0, 0.6, "none")
    ]
    alone = judge(one(rows), 4.0)
    both = judge(one([*rows, run(4.0, 1, 0.2)]), 4.0)
    assert (both.regret, both.gain, both.gain_bn) == (alone.regret, alone.gain, alone.gain_bn)
    assert both.seeds == 1


def test_without_a_common_seed_nothing_is_compared():
    rows = [run(T, 0, 0.5) for T in GRID] + [run(1.0, 7, 0.6, "none")]
    found = judge(one(rows), 4.0)
    assert found.gain is None
    assert found.plain_seeds == 0


def test_a_diverged_run_counts_as_chance_everywhere():
    rows = [run(T, 0, 0.5) for T in GRID[:2]] + [run(16.0, 0, None, status="diverged")]
    rows += [run(1.0, 0, None, "none", status="diverged")]
    condition = one(rows)
    assert condition.curve().means().tolist() == [0.5, 0.5, 0.1]
    assert condition.plain() == 0.1
    assert condition.curve().diverged == 1


def test_a_diverged_run_is_with_the_length_that_was_planned_for_it():
    rows = []
    for epochs in (5, 50):
        spec = f'{{"epochs": {epochs}, "steps": null}}'
        for T in GRID:
            rows.append(run(T, 0, 0.5, epochs=epochs, steps=10 * epochs, spec=spec))
        rows.append(run(64.0, 0, None, epochs=1, steps=3, spec=spec, status="diverged"))
    found = conditions(pd.DataFrame(rows))
    assert [c.facts["epochs"] for c in found] == [5, 50]
    assert all(c.curve().temperatures.tolist() == [*GRID, 64.0] for c in found)
