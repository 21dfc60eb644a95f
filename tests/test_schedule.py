"""T over time."""

import copy
import io
import math
import pickle
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import tstar
from tstar import Schedule, TstarError

positive = st.floats(0.01, 500)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def tempered() -> nn.Module:
    return tstar.temper(model(), 5.0)


def temperatures(module: nn.Module) -> list[float]:
    return [float(b) for name, b in module.named_buffers() if name.endswith("temperature")]


@given(positive, positive, st.integers(1, 300))
def test_linear_and_cosine_start_end_and_stay(start, end, steps):
    for make in (Schedule.linear, Schedule.cosine):
        schedule = make(start, end, steps)
        assert schedule(0) == pytest.approx(start, rel=1e-12)
        assert schedule(steps) == schedule(steps + 7) == end
        values = [schedule(t) for t in range(steps + 1)]
        differences = [b - a for a, b in pairwise(values)]
        sign = math.copysign(1, end - start)
        assert all(sign * d >= -1e-9 for d in differences)


def test_the_values_by_hand():
    assert Schedule.linear(2, 10, 4)(1) == pytest.approx(4.0)
    assert Schedule.cosine(2, 10, 4)(1) == pytest.approx(10 - 4 * (1 + math.cos(math.pi / 4)))
    assert Schedule.warmup(9, 4)(0) == 1.0
    assert Schedule.warmup(9, 4)(2) == 5.0
    assert Schedule.warmup(9, 4)(5) == 9.0


def test_it_drives_every_head_in_place():
    pair = nn.ModuleList([tempered(), tempered()])
    buffers = [b for name, b in pair.named_buffers() if name.endswith("temperature")]
    schedule = Schedule.linear(1, 9, 4).drive(pair)
    assert temperatures(pair) == [1.0, 1.0]
    assert schedule.step() == 3.0
    assert [float(b) for b in buffers] == [3.0, 3.0]  # the same tensors, not new ones


def test_the_logits_follow():
    net = tempered().eval()
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    schedule = Schedule.linear(2.0, 8.0, 1).drive(net)
    cool = net(x)
    schedule.step()
    assert torch.allclose(net(x), cool / 4)


def test_a_function_of_the_user_is_a_schedule():
    schedule = Schedule(lambda step: 2.0**step).drive(tempered())
    assert [schedule.step() for _ in range(3)] == [2.0, 4.0, 8.0]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "2", None])
def test_a_function_that_gives_no_temperature_is_refused_and_nothing_changes(value):
    net = tempered()
    schedule = Schedule(lambda step: value if step else 2.0).drive(net)
    with pytest.raises(TstarError, match="step 1"):
        schedule.step()
    assert temperatures(net) == [2.0]
    assert schedule.state_dict()["step"] == 0


def test_it_resumes_from_a_checkpoint_with_the_optimizer_and_the_learning_rate():
    """Six epochs in one go equal three, a checkpoint on disk, and three more: weights and T, bit for bit."""
    x = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))
    y = torch.arange(32) % 3
    start = tempered().state_dict()

    def parts():
        net = tempered()
        net.load_state_dict(start)
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        return (
            net,
            optimizer,
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6),
            Schedule.cosine(1, 7, 6).drive(net),
        )

    def epochs(count, net, optimizer, lr, schedule):
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
            lr.step()
            schedule.step()

    whole = parts()
    epochs(6, *whole)
    first = parts()
    epochs(3, *first)
    disk = io.BytesIO()
    torch.save([part.state_dict() for part in first], disk)
    disk.seek(0)
    second = parts()
    for part, state in zip(second, torch.load(disk, weights_only=True), strict=True):
        part.load_state_dict(state)
    assert second[3].temperature == first[3].temperature != whole[3].temperature
    epochs(3, *second)
    for a, b in zip(whole[0].state_dict().values(), second[0].state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert temperatures(second[0]) == [7.0]


def test_a_schedule_can_be_copied_and_pickled():
    for schedule in (Schedule.cosine(1, 4, 5), Schedule.warmup(2, 3)):
        schedule.go_to(1)
        for twin in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
            assert twin.state_dict() == schedule.state_dict()
            assert twin(3) == schedule(3)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Schedule.linear(0, 1, 5), "start"),
        (lambda: Schedule.cosine(1, math.nan, 5), "end"),
        (lambda: Schedule.warmup(3, 0), "steps"),
        (lambda: Schedule.linear(1, "4", 3), "number"),
        (lambda: Schedule.linear(1, 2, 3).drive(model()), "tstar.temper"),
        (lambda: Schedule.linear(1, 2, 3).drive([]), "drive"),
        (lambda: Schedule.linear(1, 2, 3).load_state_dict({}), "state_dict"),
        (lambda: Schedule(lambda step: 1 / step)(0), "function failed"),
        (lambda: Schedule.linear(1, 2, 3).step(), r"drive\(model\)"),
        (lambda: Schedule.linear(1, 2, 3).go_to(-1), "step must be a whole number"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(make, match):
    with pytest.raises(TstarError, match=match):
        make()
