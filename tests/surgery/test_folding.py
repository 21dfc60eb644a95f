"""Numbers that are no weights are not folded, and the tensor is named."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError
from tstar.surgery.folding import fold_affine


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


@pytest.mark.parametrize("bias", [True, False])
def test_the_affine_map_is_that_of_its_parts(bias):
    """W·(s⊙h + t) + b, over T, on any h."""
    generator = torch.Generator().manual_seed(0)
    W, s, t, h = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((4, 8), (8,), (8,), (5, 8))
    )
    b = torch.randn(4, generator=generator, dtype=torch.float64) if bias else None
    T = torch.tensor(3.5, dtype=torch.float64)
    weight, shift = fold_affine(W, b, s, t, T)
    expected = ((s * h + t) @ W.T + (b if b is not None else 0)) / T
    torch.testing.assert_close(h @ weight.T + shift, expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("temperature", 0.0, r"2\.temperature must be positive"),
        ("temperature", -1.0, r"2\.temperature must be positive"),
        ("temperature", float("nan"), r"2\.temperature holds NaN or infinity"),
        ("temperature", float("inf"), r"2\.temperature holds NaN"),
        ("norm.running_var", -0.5, r"2\.norm\.running_var holds a negative variance"),
        ("norm.running_mean", float("nan"), r"2\.norm\.running_mean holds NaN"),
        ("layer.weight", float("nan"), r"2\.layer\.weight holds NaN"),
        ("layer.bias", float("inf"), r"2\.layer\.bias holds NaN or infinity"),
    ],
)
def test_numbers_that_are_no_weights_are_not_folded(name, value, message):
    model = tstar.temper(network(), 3.0)
    model.train()(torch.randn(8, 6))
    tensor = model[2].state_dict()[name]
    tensor.reshape(-1)[0] = value
    with pytest.raises(TstarError, match=message):
        tstar.fold(model.eval())
    assert isinstance(model[2], TemperedHead)
