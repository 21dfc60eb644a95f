"""Which layers can be an output layer."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import tstar
from tstar import TstarError
from tstar.surgery.layers import (
    ChannelNorm,
    check_layer,
    class_dim,
    is_output_layer,
    replaced,
    weight_of,
)


def test_a_quantized_head_is_refused():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.ao.quantization.quantize_dynamic(
            nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
        )
    with pytest.raises(TstarError, match="quantiz"):
        tstar.temper(quantized, 2.0, head="1")


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.Linear(6, 4), True),
        (nn.Conv1d(6, 4, 1), True),
        (nn.Conv2d(6, 4, 1, padding="same"), True),
        (nn.Conv3d(6, 4, 1), True),
        (nn.Conv2d(6, 4, (1, 3)), False),
        (nn.Conv2d(6, 4, 1, stride=(1, 2)), False),
        (nn.Conv2d(6, 4, 1, groups=2), False),
        (nn.Conv2d(6, 4, 1, padding=(0, 1)), False),
        (nn.ConvTranspose2d(6, 4, 1), False),
        (nn.Embedding(6, 4), False),
    ],
)
def test_linear_layers_and_convolutions_of_size_one(layer, wanted):
    assert is_output_layer(layer) is wanted
    if wanted:
        check_layer(layer)
        assert weight_of(layer) is layer.weight
    else:
        with pytest.raises(TstarError, match=f"got {type(layer).__name__}. Pass head="):
            check_layer(layer)


def test_the_axis_of_the_classes():
    assert (class_dim(nn.Linear(6, 4)), class_dim(nn.Conv2d(6, 4, 1))) == (-1, 1)


def weight_normed():
    return nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))


def pruned():
    layer = nn.Linear(6, 4)
    prune.random_unstructured(layer, "weight", 0.5)
    return layer


def old_weight_norm():
    layer = nn.Linear(6, 4)
    layer.weight_g = nn.Parameter(torch.ones(4, 1))
    return layer


def integers():
    layer = nn.Linear(6, 4)
    layer.weight = nn.Parameter(torch.ones(4, 6, dtype=torch.int8), requires_grad=False)
    return layer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (weight_normed, "computed from others"),
        (pruned, "computed from others"),
        (old_weight_norm, "computed from others"),
        (lambda: nn.LazyLinear(4), "must be initialized"),
        (integers, r"floating point, got Linear with torch\.int8"),
        (lambda: nn.Linear(6, 1), "got a single logit"),
    ],
)
def test_weights_that_leave_nothing_to_fold_into(make, message):
    with pytest.raises(TstarError, match=message):
        check_layer(make())
    check_layer(nn.Linear(6, 2))


def test_a_layer_is_replaced_wherever_it_is_held():
    old, new = nn.Linear(4, 4), nn.Linear(4, 4)
    model = nn.Sequential(old, nn.Sequential(old), nn.ReLU())
    assert replaced(model, old, new) is model
    assert model[0] is model[1][0] is new
    assert replaced(old, old, new) is new
    around = nn.Sequential(new, nn.ReLU())  # holds what it takes the place of
    assert replaced(model, new, around)[0] is around
    assert around[0] is new


def test_a_norm_over_channels_is_the_layer_norm_of_every_position():
    x = torch.randn(2, 6, 3, 3, generator=torch.Generator().manual_seed(0))
    normed = ChannelNorm(6)(x)
    assert torch.allclose(normed[1, :, 2, 0], nn.functional.layer_norm(x[1, :, 2, 0], (6,)), atol=1e-6)  # fmt: skip
