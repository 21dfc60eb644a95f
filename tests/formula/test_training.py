"""How one trains, as one record, from keywords and from torch's objects."""

import pytest
import torch
from torch.optim import lr_scheduler as torch_schedules

import tstar
from tstar import TstarError
from tstar.formula.training import MOMENTUM, RATE_FACTOR, Training, family


def optimizer(lr=0.1, **options):
    return torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=lr, **options)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("sgd", ("SGD", "sgd", "FabricSGD", "SGDW")),
        (
            "adam",
            (
                *("AdamW", "adam", "NAdam", "adamw_torch", "adamw_torch_fused", "FusedAdam", "PagedAdamW8bit"),
                *("paged_adamw_8bit", "adamw_bnb_8bit", "adamw_apex_fused", "DeepSpeedCPUAdam", "adamw-torch-xla"),
            ),
        ),
        ("scale-free", ("lion", "Lion8bit", "LAMB", "adafactor", "RMSprop", "rmsprop_bnb", "Muon", "Adamax")),
        ("other", ("LBFGS", "MyOptimizer", "schedule_free_adamw", "galore_adamw_8bit_layerwise", "")),
    ],
)  # fmt: skip
def test_families(kind, names):
    assert {name: family(name) for name in names} == dict.fromkeys(names, kind)


def test_a_record_is_made_once_and_passed_whole():
    made = Training.of(("sgd", 0.01), steps=800, momentum=0.5, batch_size=32, scenario="finetune")
    assert made == Training("sgd", 0.01, 800, 0.5, batch_size=32, scenario="finetune")
    assert Training.of(made) == made
    loose = {"optimizer": "sgd", "lr": 0.01, "momentum": 0.5, "steps": 800}
    assert tstar.temperature(64, 10, optimizer=made) == tstar.temperature(
        64, 10, **loose, scenario="finetune"
    )
    assert Training.of(made, lr=0.1).lr == 0.1
    assert made.to_dict() == {
        **{"optimizer": "sgd", "lr": 0.01, "steps": 800, "momentum": 0.5, "batch_size": 32},
        **{"label_smoothing": 0.0, "scenario": "finetune", "family": "sgd"},
    }


def test_what_is_spent():
    assert Training("sgd", 0.1, 1000).spent == pytest.approx(100)
    assert Training("sgd", 0.1, 1000, MOMENTUM, RATE_FACTOR).spent == pytest.approx(100)
    assert Training("sgd", 0.1, 1000, momentum=0.0).spent == pytest.approx(10)
    assert Training("adam", 0.1, 1000, momentum=0.0).spent == pytest.approx(100)
    # A constant rate spends twice what one does that falls to zero.
    assert Training("adam", 0.1, 1000, rate_factor=1.0).spent == pytest.approx(200)
    assert (MOMENTUM, RATE_FACTOR) == (0.9, 0.5)
    with pytest.raises(TstarError, match="lr and steps are needed"):
        _ = Training("sgd").spent


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"optimizer": "sdg"}, "did you mean 'sgd'"),
        ({"optimizer": "admw"}, "adamw"),
        ({"optimizer": object()}, "optimizer must be"),
        ({"optimizer": ("sgd", "fast")}, "lr must be a number"),
        ({"lr": -1}, "lr must be positive"),
        ({"momentum": 1}, "momentum < 1 must hold"),
        ({"momentum": True}, "momentum must be a number"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"label_smoothing": 1}, "label_smoothing < 1 must hold"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"scheduler": "cosin"}, "did you mean 'cosine'"),
        ({"scheduler": 3}, "scheduler must be"),
        ({"scenario": "tune"}, "finetune"),
        ({"epochs": 3}, "samples"),
        ({"epochs": -3, "samples": 10, "batch_size": 2}, "epochs must be positive"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(TstarError, match=message):
        Training.of(**words)


def test_epochs_with_samples_and_a_batch_size_are_steps():
    assert Training.of(epochs=3, samples=100, batch_size=32).steps == 12
    assert Training.of(epochs=0.5, samples=100, batch_size=10).steps == 5


def test_a_torch_optimizer_is_read():
    found = Training.of(optimizer(0.1, momentum=0.8, weight_decay=5e-4), steps=10)
    assert found == Training("sgd", 0.1, 10, 0.8, weight_decay=5e-4)

    class Mine(torch.optim.AdamW):
        pass

    assert Training.of(Mine([torch.zeros(1, requires_grad=True)], lr=1e-3)).family == "adam"

    class Strange(torch.optim.Optimizer):
        def __init__(self):
            super().__init__([torch.zeros(1, requires_grad=True)], {"lr": 0.1})

    strange = Training.of(Strange())
    assert (strange.optimizer, strange.family) == ("strange", "other")


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


def test_a_cycle_is_not_read_as_its_base_rate():
    """CyclicLR gave T 0.63 for 8.6, since the optimizer shows its base rate."""
    own = optimizer(0.1, momentum=0.9)
    cycle = torch_schedules.CyclicLR(own, 1e-4, 0.1, step_size_up=500)
    found = tstar.temperature(64, 10, optimizer=own, scheduler=cycle, steps=2000)
    steady = tstar.temperature(64, 10, optimizer=("sgd", 0.1), scheduler="cosine", steps=2000)
    assert found == pytest.approx(steady, rel=0.01)


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


def test_the_optimizers_parameters_are_not_copied():
    class Precious(torch.nn.Parameter):
        def __deepcopy__(self, memo):
            raise AssertionError("the weights were copied")

    own = torch.optim.SGD([Precious(torch.zeros(3))], lr=0.1)
    scheduler = torch_schedules.CosineAnnealingLR(own, 10)
    assert Training.of(own, scheduler=scheduler, steps=10).rate_factor is not None
