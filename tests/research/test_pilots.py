"""Which calls of a pilot count as right."""

import pandas as pd
import pytest

from research.conditions import draw
from research.pilots import SHARES, judged, of_atlas, shorter


def case(pilot, full, **more):
    return {"training": "x", "network": "mlp", "steps": 2000, "share": 0.05, "way": "rate", "pilot": pilot, "full": full, **more}  # fmt: skip


def test_only_clear_cases_count_and_a_tie_is_half_right():
    rows = pd.DataFrame([case(1.0, 5.0), case(-1.0, 5.0), case(0.0, -5.0), case(-3.0, 1.9)])
    found = judged(rows).set_index(["part", "share"])
    assert found.loc[("all", 0.05), "size"] == 3
    assert found.loc[("all", 0.05), "mean"] == pytest.approx(0.5)
    assert found.loc[("gained at full length", 0.05), "mean"] == pytest.approx(0.5)
    assert found.loc[("lost at full length", 0.05), "size"] == 1


@pytest.mark.parametrize("share", SHARES)
def test_a_pilot_is_the_same_training_but_for_its_length(share):
    plain = draw(3).plain
    short = shorter(plain, share)
    assert short.config.steps == max(20, round(share * plain.config.steps))
    ways = of_atlas(draw(3), share)
    assert ways["plain"] == short
    assert ways["bn_rate"].config.lr == pytest.approx(3 * plain.config.lr, rel=0.01)
    assert ways["bn"].norm == "batch"
    assert ways["bn"].temperature < ways["bn_rate"].temperature or plain.config.optimizer != "sgd"
