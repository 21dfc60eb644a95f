"""How one trains, as one record, from keywords and from torch's objects."""

import math

import pytest
import torch

import tstar
from tstar import TstarError
from tstar.formula.training import MOMENTUM, RATE_FACTOR, Training, family
from tstar.training.config import Config
from tstar.training.optim import lr_factor


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
        **{"label_smoothing": 0.0, "scenario": "finetune", "tuned": False, "family": "sgd"},
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


def test_an_absurd_rate_still_has_a_finite_product():
    assert math.isfinite(Training("adamw", lr=1e308, steps=219).spent)


def test_steps_and_epochs_must_agree():
    how = {"epochs": 2, "samples": 100, "batch_size": 10}
    assert Training.of(**how).steps == Training.of(**how, steps=20).steps == 20
    with pytest.raises(TstarError, match="are 20 steps, and steps=21"):
        Training.of(**how, steps=21)
    assert Training.of(steps=21, epochs=2).steps == 21  # of epochs alone nothing can be counted


def test_a_keyword_that_does_not_exist_is_named():
    with pytest.raises(TstarError, match="Unknown keyword 'step'; did you mean 'steps'"):
        Training.of("sgd", step=5)


@pytest.mark.parametrize(
    ("name", "factor"),
    [("constant", 1.0), ("Constant_with_warmup", 1.0), ("none", 1.0), ("COSINE", 0.5), ("linear", 0.5)],
)  # fmt: skip
def test_schedules_by_name(name, factor):
    found = Training.of(("sgd", 0.1), scheduler=name)
    assert found == Training("sgd", 0.1, schedule=name.lower(), rate_factor=factor)


def test_one_cycle_by_name_is_the_schedule_of_torch_and_of_studies():
    steps, made = 4000, optimizer(momentum=0.9)
    cycle = torch.optim.lr_scheduler.OneCycleLR(made, max_lr=0.1, total_steps=steps)
    torchs = Training.of(made, scheduler=cycle, steps=steps)
    studies = sum(lr_factor(i, steps, Config(schedule="one-cycle")) for i in range(steps)) / steps
    named = Training.of(("sgd", 0.1), scheduler="one-cycle").rate_factor
    assert named == pytest.approx(torchs.rate_factor, abs=5e-4)
    assert named == pytest.approx(studies, abs=5e-4)
    with pytest.raises(TstarError, match="did you mean 'one-cycle'"):
        Training.of(scheduler="onecycle")


def test_what_the_law_needs():
    whole = Training("sgd", 0.1, 10)
    assert whole.measured
    assert whole.missing == ()
    assert Training().missing == ("optimizer", "lr", "steps")
    assert Training("adam", steps=10).missing == ("lr",)
    for lacking in (Training("sgd", 0.1), Training("sgd", steps=5), Training(lr=0.1, steps=5)):
        assert not lacking.measured
    assert not Training("lion", 0.1, 10).measured
    assert Training().family is None


def test_momentum_where_it_is_not_told():
    assert Training("sgd").rest == pytest.approx(0.1)
    assert Training("sgd", momentum=0.0).rest == 1
    assert Training("sgd", momentum=0.75).rest == 0.25


def test_a_training_has_at_least_one_step():
    assert Training.of(epochs=0.001, samples=10, batch_size=10).steps == 1
    assert Training.of(epochs=1, samples=1, batch_size=1).steps == 1
    assert Training.of(epochs=1, samples=11, batch_size=10).steps == 2  # the last batch is smaller
    for few in ({"samples": 0, "batch_size": 1}, {"samples": 1, "batch_size": 0}):
        with pytest.raises(TstarError, match="must be a whole number of at least 1"):
            Training.of(epochs=1, **few)


def test_names_of_others_pass_and_are_not_measured():
    assert Training.of("GaLore_AdamW", lr=0.1, steps=3).family == "other"
    assert Training.of(("SGD", 0.2)) == Training("sgd", 0.2)
    with pytest.raises(TstarError, match="optimizer must be"):
        Training.of(("sgd", 0.2, 3))


def test_a_record_holds_only_what_can_be():
    assert Training(weight_decay=0).weight_decay == 0
    for bad in ({"rate_factor": 0}, {"steps": 0}, {"batch_size": 0}, {"lr": 0}, {"momentum": -0.1}):
        with pytest.raises(TstarError, match=next(iter(bad))):
            Training(**bad)
    with pytest.raises(TstarError, match="scenario"):
        Training(scenario=3)


def test_epochs_are_checked_wherever_they_stand():
    assert Training.of("sgd", epochs=1e308, samples=1000, batch_size=1).steps > 10**300
    with pytest.raises(TstarError, match="epochs must be a number"):
        Training.of("sgd", epochs="x", steps=10)


@pytest.mark.parametrize("group", [3, {}, {"params": []}])
def test_an_optimizer_of_other_groups_is_refused(group):
    strange = optimizer()
    strange.param_groups = [group]
    with pytest.raises(TstarError, match="param_groups as torch's"):
        Training.of(strange)
