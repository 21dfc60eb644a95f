"""The batch norm before the head, if there is one."""

import pytest
from torch import nn

from tstar.surgery.finding import find_head
from tstar.surgery.preceding import defined_before, preceding_norm


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ([], True),
        ([nn.Dropout(0.5)], True),
        ([nn.Flatten(), nn.Identity()], True),
        ([nn.ReLU()], False),
        ([nn.ReLU(inplace=True)], False),
        ([nn.LayerNorm(8)], False),
    ],
)
def test_what_may_stand_between(between, found):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), *between, nn.Linear(8, 3))
    got = preceding_norm(model, find_head(model))
    assert got == (("1", model[1]) if found else None)
    assert defined_before(model, model[-1]) is found


def test_a_model_without_any():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    assert preceding_norm(model, find_head(model)) is None
