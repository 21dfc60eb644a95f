"""The tempered head is norm, layer and division, and folds to the layer alone."""

import copy
import io

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tstar import TstarError
from tstar.head import TemperedHead


def seeded(shape, seed=0, dtype=torch.float32):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def fill(module, seed=1):
    """Give every parameter and statistic a value that is not its default."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.is_floating_point() and not name.endswith("temperature"):
                noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
                value.copy_(noise.abs() + 0.5 if "var" in name else noise)
            elif name.endswith("num_batches_tracked"):
                value.fill_(1)
    return module


def test_forward_is_norm_then_layer_then_division():
    head = fill(TemperedHead(nn.Linear(5, 3), 4.0)).double()
    h = seeded((16, 5), dtype=torch.float64)
    mean, var = h.mean(0), h.var(0, unbiased=False)
    normed = (h - mean) / (var + 1e-5).sqrt() * head.norm.weight + head.norm.bias
    expected = (normed @ head.layer.weight.T + head.layer.bias) / 4.0
    torch.testing.assert_close(head(h), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (4, 6), (4, 9, 6), (2, 3, 5, 6)])
def test_linear_heads_normalize_over_all_but_the_features(shape):
    head = fill(TemperedHead(nn.Linear(6, 3), 2.0)).train()
    h = seeded(shape)
    logits = head(h)
    assert logits.shape == (*shape[:-1], 3)
    if len(shape) > 1:
        twin = fill(TemperedHead(nn.Linear(6, 3), 2.0)).train()
        torch.testing.assert_close(logits, twin(h.reshape(-1, 6)).reshape(*shape[:-1], 3))
        torch.testing.assert_close(head.norm.running_mean, twin.norm.running_mean)


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        (nn.Conv1d(6, 3, 1), nn.BatchNorm1d, (4, 6, 5)),
        (nn.Conv2d(6, 3, 1), nn.BatchNorm2d, (4, 6, 5, 5)),
        (nn.Conv3d(6, 3, 1), nn.BatchNorm3d, (4, 6, 2, 2, 2)),
    ],
)
def test_convolution_heads_get_the_norm_of_their_dimension(layer, norm, shape):
    head = TemperedHead(layer, 2.0)
    assert type(head.norm) is norm
    assert head(seeded(shape)).shape[1] == 3


def test_a_training_batch_of_one_uses_the_running_statistics_and_leaves_them():
    head = fill(TemperedHead(nn.Linear(5, 3), 2.0)).train()
    before = copy.deepcopy(head.state_dict())
    h = seeded((1, 5))
    alone = head(h)
    assert all(torch.equal(before[k], v) for k, v in head.state_dict().items())
    torch.testing.assert_close(alone, head.eval()(h))
    head.train()(h).sum().backward()
    assert head.norm.weight.grad is not None  # the step still trains the norm's affine part


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["linear", "conv1d", "conv2d"]),
    bias=st.booleans(),
    affine=st.booleans(),
    norm=st.sampled_from(["batch", None]),
    temperature=st.floats(0.01, 500),
    double=st.booleans(),
    seed=st.integers(0, 10**6),
    features=st.integers(1, 40),
    classes=st.integers(2, 20),
)
def test_folding_changes_no_logit(
    kind, bias, affine, norm, temperature, double, seed, features, classes
):
    dtype = torch.float64 if double else torch.float32
    make = {
        "linear": lambda: nn.Linear(features, classes, bias=bias),
        "conv1d": lambda: nn.Conv1d(features, classes, 1, bias=bias),
        "conv2d": lambda: nn.Conv2d(features, classes, 1, bias=bias),
    }[kind]
    shape = {"linear": (8, features), "conv1d": (8, features, 3), "conv2d": (8, features, 2, 2)}[
        kind
    ]
    head = TemperedHead(make(), temperature, norm)
    if norm and not affine:
        head.norm = type(head.norm)(features, affine=False)
    head = fill(head, seed).to(dtype).eval()
    plain = head.fuse(allow_bias=True)
    h = seeded(shape, seed + 1, dtype)
    assert type(plain) is type(head.layer)
    expected, folded = head(h), plain(h)
    scale = expected.abs().max().clamp(min=1e-30)
    assert ((folded - expected).abs().max() / scale) < (1e-10 if double else 1e-5)


def test_fold_agrees_with_the_algebra_of_the_paper():
    """W′ = W·diag(s)/T, b′ = (W(β − s⊙μ) + b)/T, element by element."""
    head = fill(TemperedHead(nn.Linear(3, 2), 5.0)).double().eval()
    n, layer = head.norm, head.layer
    plain = head.fuse()
    for i in range(2):
        shift = 0.0
        for j in range(3):
            s = (n.weight[j] / (n.running_var[j] + n.eps).sqrt()).item()
            assert plain.weight[i, j].item() == pytest.approx(layer.weight[i, j].item() * s / 5.0)
            shift += layer.weight[i, j].item() * (n.bias[j].item() - s * n.running_mean[j].item())
        assert plain.bias[i].item() == pytest.approx((shift + layer.bias[i].item()) / 5.0)


def test_a_layer_that_was_parametrized_after_tempering_does_not_fold():
    """Its weight is computed from others: what is written into it is lost."""
    head = TemperedHead(nn.Linear(6, 4), 3.0)
    head(torch.randn(8, 6))
    nn.utils.parametrizations.weight_norm(head.layer)
    with pytest.raises(TstarError, match="remove_parametrizations"):
        head.eval().fuse()


def test_fuse_leaves_the_head_as_it_was():
    head = fill(TemperedHead(nn.Linear(3, 2), 5.0)).eval()
    before = copy.deepcopy(head.state_dict())
    head.fuse()
    assert all(torch.equal(before[k], v) for k, v in head.state_dict().items())


def test_fold_refuses_a_missing_bias_and_training_mode():
    with pytest.raises(TstarError, match="allow_bias=True"):
        fill(TemperedHead(nn.Linear(3, 2, bias=False), 5.0)).eval().fuse()
    assert TemperedHead(nn.Linear(3, 2, bias=False), 5.0, norm=None).eval().fuse().bias is None
    with pytest.raises(TstarError, match=r"model\.eval\(\)"):
        TemperedHead(nn.Linear(3, 2), 5.0).train().fuse()


def test_the_temperature_is_saved_moved_and_changed_in_place():
    head = TemperedHead(nn.Linear(3, 2), 7.5)
    buffer = head.temperature
    other = TemperedHead(nn.Linear(3, 2), 1.0)
    other.load_state_dict(head.state_dict())
    assert other.temperature.item() == 7.5
    head.set_temperature(2.0)
    assert buffer.item() == 2.0
    assert head.to("meta").temperature.is_meta


def test_argmax_is_unchanged_by_the_temperature():
    layer = nn.Linear(6, 5)
    h = seeded((64, 6))
    assert torch.equal(
        TemperedHead(layer, 0.3, None)(h).argmax(1), TemperedHead(layer, 300.0, None)(h).argmax(1)
    )


def test_copies_pickles_autocast_and_compile():
    head = fill(TemperedHead(nn.Linear(6, 3), 3.0)).eval()
    h = seeded((4, 6))
    assert torch.equal(copy.deepcopy(head)(h), head(h))
    file = io.BytesIO()
    torch.save(head, file)
    file.seek(0)
    assert torch.equal(
        torch.load(file, weights_only=False)(h), head(h)
    )  # our own bytes, written a line above
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = head(h)
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), head(h), rtol=0.05, atol=0.05)
    for training in (False, True):
        head.train(training)
        twin = copy.deepcopy(head)
        compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(h), head(h))


def test_dtype_device_and_mode_follow_the_layer():
    head = TemperedHead(nn.Linear(6, 3, dtype=torch.bfloat16), 3.3)
    assert head.norm.weight.dtype == torch.bfloat16
    assert head.temperature.dtype == torch.float32
    assert TemperedHead(nn.Linear(6, 3).eval(), 3.0).training is False
    assert TemperedHead(nn.Linear(6, 3, device="meta"), 3.0).norm.weight.is_meta


def test_it_answers_for_its_layer():
    head = TemperedHead(nn.Conv2d(6, 3, 1), 2.0)
    assert (head.in_features, head.out_features) == (6, 3)
    assert head.weight is head.layer.weight
    assert head.bias is head.layer.bias
    assert "temperature=2" in repr(head)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), "hot", None, True])
def test_bad_temperatures(bad):
    with pytest.raises(TstarError, match=r"^temperature must be"):
        TemperedHead(nn.Linear(3, 2), bad)
    head = TemperedHead(nn.Linear(3, 2), 2.0)
    with pytest.raises(TstarError, match=r"^temperature must be"):
        head.set_temperature(bad)
    assert head.temperature == 2.0
    with pytest.raises(TstarError, match="did you mean 'batch'"):
        TemperedHead(nn.Linear(3, 2), 2.0, norm="bacth")


def test_a_synchronized_norm_sees_every_row_whatever_this_process_has():
    """One row here may be one of many: only an ordinary norm falls back to its running statistics."""

    class Counted(nn.SyncBatchNorm):
        rows = 0

        def forward(self, x):  # the real one needs a GPU
            self.rows += len(x)
            return x

    head = TemperedHead(nn.Linear(4, 3), 2.0)
    one = torch.randn(1, 4)
    before = head.norm.num_batches_tracked.clone()
    head.train()(one)
    assert head.norm.num_batches_tracked == before  # alone: the running statistics
    head.norm = Counted(4)
    head.train()(one)
    assert head.norm.rows == 1


def test_an_adapter_does_not_fold():
    head = TemperedHead(nn.Linear(3, 2), 2.0).eval()
    head.layer.base_layer = nn.Linear(3, 2)
    with pytest.raises(TstarError, match="merge_and_unload"):
        head.fuse()


@pytest.mark.parametrize("recurse", [True, False])
def test_the_temperature_outlives_the_meta_device(recurse):
    """``to_empty`` gives memory that holds anything; layers and norms initialize themselves, T cannot."""
    head = copy.deepcopy(TemperedHead(nn.Linear(6, 3, device="meta"), 1.0))
    head.set_temperature(3.0)
    empty = head.to_empty(device="cpu", recurse=recurse)
    assert empty.temperature.item() == 3.0
    assert empty.layer.weight.is_meta is not recurse
    empty.temperature.fill_(5.0)
    assert empty.double().temperature.item() == 5.0  # what is in memory is kept as it is


@pytest.mark.parametrize("other", [nn.GroupNorm(2, 6), nn.Identity(), nn.InstanceNorm2d(6)])
def test_another_norm_in_the_place_of_ours_is_refused(other):
    head = TemperedHead(nn.Conv2d(6, 3, 1), 3.0).eval()
    head.norm = other.eval()
    for act in (lambda: head(torch.randn(2, 6, 4, 4)), head.fuse):
        with pytest.raises(TstarError, match=f"must be a batch norm, got {type(other).__name__}"):
            act()
