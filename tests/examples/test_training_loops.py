"""What the loops rely on: the norm is found by others' tools, and T changes without a new compilation."""

import torch
from torch import nn

import tstar
from tstar.head import TemperedHead


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))


def test_sync_batch_norm_conversion_finds_the_head_s_norm():
    model = tstar.temper(network(), 4.0)
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    head = converted[3]
    assert isinstance(head, TemperedHead)
    assert isinstance(head.norm, nn.SyncBatchNorm)
    x = torch.randn(4, 12)
    converted.eval()
    head.norm.num_batches_tracked.fill_(1)
    torch.testing.assert_close(tstar.fold(converted)(x), converted(x))


def test_another_temperature_needs_no_new_compilation():
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    model = tstar.temper(network(), 4.0).eval()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    x = torch.randn(4, 12)
    first = compiled(x)
    model[3].set_temperature(8.0)
    torch.testing.assert_close(compiled(x), first / 2)
    assert counter.frame_count == 1
    torch._dynamo.reset()


def test_autocast_keeps_statistics_and_temperature_in_float32():
    model = tstar.temper(network(), 4.0)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(torch.randn(16, 12))
    assert logits.dtype == torch.bfloat16
    logits.float().sum().backward()
    head = model[3]
    assert head.temperature.dtype == head.norm.running_mean.dtype == torch.float32
    assert head.weight.grad.dtype == torch.float32


def test_accumulated_gradients_are_those_of_the_parts():
    """The division by T is linear: the gradients of parts of a batch add up, at fixed statistics."""
    model = tstar.temper(network().double(), 4.0).eval()
    x, y = torch.randn(8, 12, dtype=torch.float64), torch.arange(8) % 3
    nn.functional.cross_entropy(model(x), y).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for rows in (slice(0, 4), slice(4, 8)):
        (nn.functional.cross_entropy(model(x[rows]), y[rows]) / 2).backward()
    for parameter, gradient in zip(model.parameters(), whole, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
