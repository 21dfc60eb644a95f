"""AdaCos with its fixed scale."""

import math

import pytest
from torch import nn

from tests.methods.networks import K, cosine_loss, loss_of
from tstar import TstarError, methods


def test_adacos():
    value, *_ = loss_of("adacos-fixed")
    assert value == pytest.approx(cosine_loss(math.sqrt(2) * math.log(K - 1)), rel=1e-6)


def test_two_classes_have_no_scale():
    with pytest.raises(TstarError, match="K"):
        methods.get("adacos-fixed").prepare(nn.Linear(3, 2), methods.Facts(3, 2))
