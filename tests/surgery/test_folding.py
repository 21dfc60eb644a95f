"""Numbers that are no weights are not folded, and the tensor is named."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError, TstarWarning
from tstar.surgery.folding import affine_of_norm, check_numbers, fold_affine


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


def test_a_norm_in_eval_mode_is_its_affine_map():
    """s = γ/sqrt(σ² + ε) and t = β − s·μ, by hand; LayerNorm's are γ and β."""
    like = torch.ones(4, 2)
    norm = nn.BatchNorm1d(2, eps=1.0)
    norm.load_state_dict(
        {
            "weight": torch.tensor([2.0, 3.0]),
            "bias": torch.tensor([1.0, -1.0]),
            "running_mean": torch.tensor([5.0, 10.0]),
            "running_var": torch.tensor([3.0, 8.0]),
            "num_batches_tracked": torch.tensor(1),
        }
    )
    scale, shift = affine_of_norm(norm, like)
    assert (scale.tolist(), shift.tolist()) == ([1.0, 1.0], [-4.0, -11.0])
    assert scale.dtype == torch.float64
    layer = nn.LayerNorm(2)
    nn.init.constant_(layer.weight, 3.0)
    nn.init.constant_(layer.bias, 0.5)
    scale, shift = affine_of_norm(layer, like)
    assert (scale.tolist(), shift.tolist()) == ([3.0, 3.0], [0.5, 0.5])
    plain = nn.BatchNorm1d(2, eps=1.0, affine=False)
    plain.num_batches_tracked.fill_(1)
    plain.running_mean.fill_(2.0)
    plain.running_var.fill_(3.0)
    scale, shift = affine_of_norm(plain, like)
    assert (scale.tolist(), shift.tolist()) == ([0.5, 0.5], [-1.0, -1.0])
    assert affine_of_norm(None, like)[0].tolist() == [1.0, 1.0]
    assert affine_of_norm(None, like)[1] is None


def test_a_norm_without_statistics_is_refused_or_said():
    with pytest.raises(TstarError, match="track_running_stats=False"):
        affine_of_norm(nn.BatchNorm1d(2, track_running_stats=False), torch.ones(4, 2))
    with pytest.warns(TstarWarning, match="has never seen a training batch"):
        affine_of_norm(nn.BatchNorm1d(2), torch.ones(4, 2))


def test_without_a_shift_only_the_weight_is_scaled():
    weight, bias = fold_affine(
        torch.full((3, 2, 1, 1), 4.0), None, torch.tensor([1.0, 2.0]), None, torch.tensor(2.0)
    )
    assert weight.shape == (3, 2, 1, 1)
    assert weight[0].flatten().tolist() == [2.0, 4.0]
    assert bias.tolist() == [0.0] * 3
    assert weight.dtype == bias.dtype == torch.float32


def test_numbers_on_meta_and_counts_are_not_looked_at():
    check_numbers("", TemperedHead(nn.Linear(6, 4, device="meta"), 3.0))
    head = TemperedHead(nn.Linear(6, 4), 3.0, backbone=2.0)
    check_numbers("", head)
    head.norm.running_var.zero_()  # a constant feature has none
    check_numbers("", head)
    head.backbone.fill_(-1.0)
    with pytest.raises(TstarError, match="folded: backbone must be positive, got -1"):
        check_numbers("", head)
