"""What optimizers and schedulers of other libraries say, read without changing them."""

import pytest
import torch
from torch.optim import lr_scheduler as torch_schedules

import tstar
from tstar.formula.reading import highest_rate, optimizer_facts, schedule_facts
from tstar.formula.training import Training


def optimizer(lr=0.1, **options):
    return torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=lr, **options)


class SAM(torch.optim.Optimizer):
    """As in every copy of it: the base optimizer holds the same groups."""

    def __init__(self, params, base, **options):
        super().__init__(params, {"rho": 0.05, **options})
        self.base_optimizer = base(self.param_groups, **options)


class Lookahead:  # as in timm
    def __init__(self, base):
        self._base_optimizer, self.param_groups = base, base.param_groups


class Accelerated:  # as in accelerate; Fabric's has _optimizer
    def __init__(self, inner):
        self.optimizer, self.param_groups = inner, inner.param_groups


def test_wrapped_optimizers_are_unwrapped():
    sam = SAM([torch.zeros(3, requires_grad=True)], torch.optim.SGD, lr=0.1, momentum=0.9)
    for wrapped in (sam, Lookahead(optimizer(momentum=0.9)), Accelerated(sam)):
        found = Training.of(wrapped)
        assert (found.optimizer, found.lr, found.momentum) == ("sgd", 0.1, 0.9)


SCHEDULES = {
    # name: (make, highest rate, mean over highest), each run for 100 epochs
    "cosine": (lambda o: torch_schedules.CosineAnnealingLR(o, 100), 0.1, 0.5),
    "linear": (lambda o: torch_schedules.LinearLR(o, 1.0, 1e-9, 100), 0.1, 0.5),
    "constant": (lambda o: torch_schedules.ConstantLR(o, factor=1.0), 0.1, 1.0),
    "plateau": (lambda o: torch_schedules.ReduceLROnPlateau(o), 0.1, 1.0),
    "step": (lambda o: torch_schedules.StepLR(o, 50, gamma=0.1), 0.1, 0.55),
    "milestones": (lambda o: torch_schedules.MultiStepLR(o, [50], gamma=0.1), 0.1, 0.55),
    "exponential": (lambda o: torch_schedules.ExponentialLR(o, 0.5), 0.1, 0.02),
    "lambda": (lambda o: torch_schedules.LambdaLR(o, lambda t: 1 - t / 1000), 0.1, 0.5),
    "one cycle": (lambda o: torch_schedules.OneCycleLR(o, 0.4, total_steps=1000), 0.4, None),
    "cyclic": (lambda o: torch_schedules.CyclicLR(o, 0.001, 0.3, step_size_up=100), 0.3, 0.5),
    "sequential": (
        lambda o: torch_schedules.SequentialLR(
            o,
            [torch_schedules.LinearLR(o, 0.01, 1.0, 20), torch_schedules.CosineAnnealingLR(o, 80)],
            [20],
        ),
        0.1,
        0.5,
    ),
    "polynomial": (lambda o: torch_schedules.PolynomialLR(o, 100), 0.1, 0.5),
    "multiplicative": (lambda o: torch_schedules.MultiplicativeLR(o, lambda t: 0.5), 0.1, 0.02),
    "warm restarts": (lambda o: torch_schedules.CosineAnnealingWarmRestarts(o, 10), 0.1, 0.55),
    "chained": (
        lambda o: torch_schedules.ChainedScheduler(
            [torch_schedules.ConstantLR(o, 1.0), torch_schedules.ExponentialLR(o, 0.5)]
        ),
        0.1,
        0.02,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_scheduler_of_torch_is_run_without_training(name):
    make, highest, factor = SCHEDULES[name]
    own = optimizer(0.1, momentum=0.9)
    scheduler = make(own)
    before, state = own.param_groups[0]["lr"], str(scheduler.state_dict())
    found = Training.of(own, scheduler=scheduler, epochs=100, samples=1000, batch_size=100)
    assert found.steps == 1000
    assert found.lr == pytest.approx(highest, rel=1e-3)
    if factor is not None:
        assert found.rate_factor == pytest.approx(factor, abs=0.011)
    assert 0 < found.rate_factor <= 1
    assert own.param_groups[0]["lr"] == before  # nothing moved
    assert str(scheduler.state_dict()) == state


def test_no_scheduler_of_torch_is_left_out():
    every = {
        name
        for name, kind in vars(torch_schedules).items()
        if isinstance(kind, type) and issubclass(kind, torch_schedules.LRScheduler)
    } - {"LRScheduler", "_LRScheduler"}
    tried = {type(make(optimizer(0.1, momentum=0.9))).__name__ for make, _, _ in SCHEDULES.values()}
    assert every - tried == set()


def test_a_cycle_is_not_read_as_its_base_rate():
    """CyclicLR gave T 0.63 for 8.6, since the optimizer shows its base rate."""
    own = optimizer(0.1, momentum=0.9)
    cycle = torch_schedules.CyclicLR(own, 1e-4, 0.1, step_size_up=500)
    found = tstar.temperature(64, 10, optimizer=own, scheduler=cycle, steps=2000)
    steady = tstar.temperature(64, 10, optimizer=("sgd", 0.1), scheduler="cosine", steps=2000)
    assert found == pytest.approx(steady, rel=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: torch_schedules.CosineAnnealingLR(o, 1000),
        lambda o: torch_schedules.LinearLR(o, 1.0, 1e-9, 1000),
        lambda o: torch_schedules.StepLR(o, 500),
        lambda o: torch_schedules.MultiStepLR(o, [500]),
        lambda o: torch_schedules.CosineAnnealingWarmRestarts(o, 500),
    ],
)
def test_a_schedule_longer_than_the_epochs_steps_after_every_batch(make):
    own = optimizer(0.1)
    found = Training.of(own, scheduler=make(own), epochs=10, samples=10_000, batch_size=100)
    assert found.steps == 1000
    assert found.rate_factor == pytest.approx(0.5, abs=0.06)


def test_a_clock_that_is_not_known_is_told():
    own = optimizer(0.1)
    scheduler = torch_schedules.StepLR(own, 30)
    found = tstar.explain(64, 10, optimizer=own, scheduler=scheduler, steps=9000)
    assert found.training.rate_factor is None
    assert "schedule-unread" in {notice.code for notice in found.notices}
    by_step = Training.of(own, scheduler=torch_schedules.StepLR(own, 4500), steps=9000)
    assert by_step.rate_factor == pytest.approx(0.55)


def test_schedules_of_transformers():
    transformers = pytest.importorskip("transformers")
    own = optimizer(0.1)
    linear = transformers.get_scheduler(
        "linear", own, num_warmup_steps=100, num_training_steps=1000
    )
    found = Training.of(own, scheduler=linear, steps=1000)
    assert (found.lr, found.rate_factor) == pytest.approx((0.1, 0.5), abs=0.01)
    long = transformers.get_scheduler("cosine", own, 0, 1_000_000)
    assert Training.of(own, scheduler=long, steps=1_000_000).rate_factor == pytest.approx(
        0.5, abs=0.01
    )


def test_schedules_of_timm():
    schedulers = pytest.importorskip("timm.scheduler")
    own = optimizer(0.1)
    cosine = schedulers.CosineLRScheduler(own, t_initial=50, warmup_t=5, warmup_lr_init=1e-5)
    found = Training.of(own, scheduler=cosine, epochs=50, steps=5000)
    assert found.lr == pytest.approx(0.1, rel=0.05)
    assert found.rate_factor == pytest.approx(0.5, abs=0.05)
    by_update = schedulers.CosineLRScheduler(own, t_initial=5000, t_in_epochs=False)
    found = Training.of(own, scheduler=by_update, epochs=50, steps=5000)
    assert found.rate_factor == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("name", "options", "factor"),
    [
        ("TanhLRScheduler", {"t_initial": 50}, None),
        ("StepLRScheduler", {"decay_t": 25, "decay_rate": 0.1}, 0.55),
        ("MultiStepLRScheduler", {"decay_t": [25], "decay_rate": 0.1}, 0.55),
        ("PolyLRScheduler", {"t_initial": 50, "power": 1.0}, 0.5),
        ("PlateauLRScheduler", {}, 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore:The verbose parameter is deprecated")  # timm's, with torch 2.6
@pytest.mark.filterwarnings("ignore:PlateauLRScheduler is deprecated")  # timm's, from 1.0.31
def test_the_others_of_timm(name, options, factor):
    schedulers = pytest.importorskip("timm.scheduler")
    own = optimizer(0.1)
    found = Training.of(
        own, scheduler=getattr(schedulers, name)(own, **options), epochs=50, steps=500
    )
    assert found.lr == pytest.approx(0.1)
    assert 0 < found.rate_factor <= 1
    if factor is not None:
        assert found.rate_factor == pytest.approx(factor, abs=0.03)


def test_what_accelerate_wraps_is_read():
    accelerate = pytest.importorskip("accelerate")
    net = torch.nn.Linear(4, 3)
    own = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    cosine = torch_schedules.CosineAnnealingLR(own, 100)
    wrapped, schedule = accelerate.Accelerator(cpu=True).prepare(own, cosine)
    assert type(wrapped).__name__ == "AcceleratedOptimizer"
    found = Training.of(wrapped, scheduler=schedule, steps=100)
    assert (found.optimizer, found.lr, found.rate_factor) == (
        "sgd",
        0.1,
        pytest.approx(0.5, abs=0.01),
    )


def test_what_fabric_wraps_is_read():
    fabric = pytest.importorskip("lightning.fabric")
    net = torch.nn.Linear(4, 3)
    own = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    _, wrapped = fabric.Fabric(accelerator="cpu", devices=1).setup(net, own)
    assert wrapped is not own
    found = Training.of(wrapped)
    assert (found.optimizer, found.lr, found.momentum) == ("sgd", 0.1, 0.9)


def test_the_optimizers_parameters_are_not_copied():
    class Precious(torch.nn.Parameter):
        def __deepcopy__(self, memo):
            raise AssertionError("the weights were copied")

    own = torch.optim.SGD([Precious(torch.zeros(3))], lr=0.1)
    scheduler = torch_schedules.CosineAnnealingLR(own, 10)
    assert Training.of(own, scheduler=scheduler, steps=10).rate_factor is not None


def test_a_long_schedule_that_is_a_function_of_the_step_is_sampled():
    """40,000 steps: a lambda is asked two thousand times, a step schedule at every step."""
    own, asked = optimizer(), []

    def falling(step):
        asked.append(step)
        return 1 - step / 40_000

    scheduler = torch_schedules.LambdaLR(own, falling)
    found = schedule_facts(scheduler, own, 40_000, None, None)
    assert found["rate_factor"] == pytest.approx(0.5, abs=0.001)
    assert len(asked) < 3_000
    late = torch_schedules.StepLR(
        own, 39_990, gamma=1e-9
    )  # ten steps at the end that a stride misses
    found = schedule_facts(late, own, 40_000, None, None)
    assert found["rate_factor"] == pytest.approx(39_990 / 40_000, rel=1e-9)


def test_of_several_groups_the_layer_s_own_counts_else_the_fastest():
    body, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
    groups = [
        {"params": body.parameters(), "lr": 0.5, "weight_decay": 0.1},
        {"params": head.parameters(), "lr": 0.2, "weight_decay": 0.3, "momentum": 0.8},
    ]
    own = torch.optim.SGD(groups, lr=0.1)

    def facts(layer):
        return optimizer_facts(own, layer, lambda name: name == "sgd")

    assert facts(head) == {"optimizer": "sgd", "lr": 0.2, "momentum": 0.8, "weight_decay": 0.3}
    assert facts(None)["lr"] == facts(torch.nn.Linear(2, 2))["lr"] == 0.5
    assert optimizer_facts(own, None, lambda name: False)["optimizer"] == "sgd"


def test_the_rate_that_a_schedule_falls_from():
    assert highest_rate({"lr": 0.1}) == 0.1
    assert highest_rate({"lr": 0.1, "initial_lr": 0.3}) == 0.3  # a warm-up has lowered it
    assert highest_rate({"lr": 0.1, "initial_lr": 0.1, "max_lr": 0.4}) == 0.4
    cycled = optimizer(momentum=0.9)
    torch_schedules.OneCycleLR(cycled, 0.4, total_steps=10)  # momentum starts at 0.95
    assert optimizer_facts(cycled, None, lambda name: True)["momentum"] == 0.9


def test_what_is_no_scheduler_is_refused_and_one_that_breaks_is_named_alone():
    with pytest.raises(tstar.TstarError, match="got object"):
        schedule_facts(object(), None, 10, None, None)

    class Breaks(torch_schedules.LambdaLR):
        def __deepcopy__(self, memo):
            raise RuntimeError

    own = optimizer()
    broken = Breaks(own, lambda t: 1.0)
    assert schedule_facts(broken, own, 10, None, None) == {"schedule": "Breaks"}


def test_a_schedule_without_a_rate_is_named_alone():
    own = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    nothing = torch_schedules.LambdaLR(own, lambda step: 0.0)
    assert schedule_facts(nothing, own, 10, None, None) == {"schedule": "LambdaLR"}


@pytest.mark.parametrize("length", [10**9, 10**30])
def test_a_schedule_of_very_many_steps_is_looked_at_here_and_there(length):
    own = optimizer()
    cosine = torch_schedules.CosineAnnealingLR(own, length)
    facts = schedule_facts(cosine, own, length, None, None)
    assert facts["rate_factor"] == pytest.approx(0.5, abs=1e-3)
    chained = torch_schedules.ChainedScheduler([torch_schedules.StepLR(own, length // 2)])
    assert "rate_factor" not in schedule_facts(chained, own, length, None, None)


def _mean(function, steps, epochs):
    own = optimizer()
    schedule = torch_schedules.LambdaLR(own, function)
    return schedule_facts(schedule, own, steps, epochs, None).get("rate_factor")


@pytest.mark.parametrize(
    "function",
    [
        lambda epoch: 0.95**epoch,
        lambda epoch: 0.1 ** (epoch // 15),
        lambda epoch: 1 - epoch / 45,
        lambda epoch: max(0.0, 1 - epoch / 45),
        lambda epoch: min(1.0, (epoch + 1) / 5) * 0.9**epoch,
    ],
)
def test_a_function_that_would_be_dead_at_once_is_one_of_the_epoch(function):
    """As in torch's own example; told by its values, since nothing else says so."""
    values = [function(epoch) for epoch in range(45)]
    assert _mean(function, 4500, 45) == pytest.approx(sum(values) / 45 / max(values))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda step: 1 - step / 4500, 0.5),
        (lambda step: min(1.0, (step + 1) / 100), 0.989),
        (lambda step: max(0.0, 1 - step / 300), 0.033),  # of accumulated gradients: a fifteenth of the steps
        (lambda step: 0.999**step, 0.22),
    ],
)  # fmt: skip
def test_any_other_is_one_of_the_step(function, expected):
    assert _mean(function, 4500, 45) == pytest.approx(expected, rel=0.02)


def test_without_epochs_a_function_is_one_of_the_step():
    assert _mean(lambda epoch: 0.95**epoch, 4500, None) == pytest.approx(20 / 4500, rel=0.03)


def test_a_rate_below_zero_says_nothing_of_the_mean():
    assert _mean(lambda epoch: 1 - epoch / 45, 4500, None) is None
