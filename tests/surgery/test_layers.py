"""Which layers can be an output layer."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TstarError


def test_a_quantized_head_is_refused():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.ao.quantization.quantize_dynamic(
            nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
        )
    with pytest.raises(TstarError, match="quantiz"):
        tstar.temper(quantized, 2.0, head="1")
