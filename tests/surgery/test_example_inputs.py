"""Inputs that models of known libraries take."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError


def test_a_model_that_takes_no_standard_input_asks_for_one():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x, mask, key):
            if mask.any() and key == 3:
                return self.fc(x)
            raise ValueError

    with pytest.raises(TstarError, match="pass example_input"):
        tstar.find_head(Odd())
    assert tstar.find_head(Odd(), (torch.randn(2, 6), torch.ones(1), 3)).path == "fc"
    assert isinstance(tstar.temper(Odd(), 2.0, head="fc").fc, TemperedHead)
