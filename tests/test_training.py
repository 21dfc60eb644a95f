"""How one trains, as one record, from keywords and from torch's objects."""

import sys
import types
from dataclasses import fields

import pytest
import torch

from tstar import TstarError
from tstar.training import Training, family, own_head_rate, unwrapped


def optimizer(lr=0.1, **options):
    return torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=lr, **options)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("sgd", ("SGD", "sgd", "FabricSGD", "SGDW")),
        ("adam", ("AdamW", "adam", "NAdam", "adamw_torch_fused", "PagedAdamW8bit", "adamw-torch-xla", "DeepSpeedCPUAdam")),
        ("other", ("lion", "LAMB", "Muon", "LBFGS", "MyOptimizer", "schedule_free_adamw", "galore_adamw_8bit", "")),
    ],
)  # fmt: skip
def test_families(kind, names):
    assert {name: family(name) for name in names} == dict.fromkeys(names, kind)


def test_a_record_is_made_once_and_passed_whole():
    how = {"steps": 800, "momentum": 0.5, "batch_size": 32, "scenario": "finetune"}
    made = Training.of("sgd", lr=0.01, **how)
    assert made == Training("sgd", lr=0.01, **how)
    assert Training.of(made) == made
    assert Training.of(made, lr=0.1).lr == 0.1
    defaults = {"label_smoothing": 0.0, "tuned": False}
    assert made.to_dict() == {"optimizer": "sgd", "lr": 0.01, **how, **defaults}
    assert Training(**made.to_dict()) == made


def test_every_field_is_described():
    for item in fields(Training):
        assert item.metadata["meaning"], item.name
        assert item.metadata["label"], item.name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"optimizer": object()}, "optimizer must be"),
        ({"optimizer": ("sgd", 0.1)}, "optimizer must be"),
        ({"lr": -1}, "lr must be positive"),
        ({"momentum": 1}, "momentum < 1 must hold"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"label_smoothing": 1}, "label_smoothing < 1 must hold"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"scenario": "tune"}, "finetune"),
        ({"tuned": "no"}, "tuned must be a bool"),
        ({"args": 3}, "TrainingArguments"),
        ({"epochs": -3, "samples": 10, "batch_size": 2}, "epochs must be positive"),
        ({"batch_size": 8, "accumulate": 0}, "accumulate must be"),
        ({"bath_size": 8}, "did you mean 'batch_size'"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(TstarError, match=message):
        Training.of(**words)


def test_epochs_with_samples_and_a_batch_size_are_steps():
    how = {"samples": 100, "batch_size": 10}
    assert Training.of(epochs=3, samples=100, batch_size=32).steps == 12
    assert Training.of(epochs=0.5, **how).steps == 5
    assert Training.of(epochs=2, steps=21, **how).steps == 21


def test_accumulated_batches_and_processes_make_one_step(monkeypatch):
    how = {"epochs": 2, "samples": 1000, "batch_size": 10}
    assert (Training.of(**how).batch_size, Training.of(**how).steps) == (10, 200)
    found = Training.of(**how, accumulate=4)
    assert (found.batch_size, found.steps) == (40, 50)
    group = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 5
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", group)
    found = Training.of(**how, accumulate=4)
    assert (found.batch_size, found.steps) == (200, 10)


@pytest.mark.parametrize("names", [("gradient_accumulation_steps", "world_size"), ("gradient_accumulation_steps", "num_processes"), ("accumulate_grad_batches", "world_size")])  # fmt: skip
def test_a_trainer_tells_both(names, monkeypatch):
    """transformers' arguments, accelerate's Accelerator, Lightning's Trainer."""
    trainer = types.SimpleNamespace(**dict(zip(names, (4, 2), strict=True)))
    how = dict(optimizer="sgd", lr=0.1, epochs=1, samples=800, batch_size=8)
    found = Training.of(**how, accumulate=trainer)
    assert (found.batch_size, found.steps) == (64, 13)
    monkeypatch.setattr("tstar.training.processes", lambda: 2)  # torch knows them by now
    assert Training.of(**how, accumulate=trainer) == found


def test_a_prepared_optimizer_tells_how_many_batches_it_accumulates():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
    prepared = accelerator.prepare(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))
    assert Training.of(prepared, batch_size=8).batch_size == 32
    assert Training.of("sgd", batch_size=8, accumulate=accelerator).batch_size == 32


def test_a_torch_optimizer_is_read():
    found = Training.of(optimizer(0.1, momentum=0.8, weight_decay=5e-4), steps=10)
    assert found == Training("sgd", lr=0.1, steps=10, momentum=0.8, weight_decay=5e-4)

    class Mine(torch.optim.AdamW):
        pass

    assert Training.of(Mine([torch.zeros(1, requires_grad=True)], lr=1e-3)).family == "adam"

    class Broken:
        def __getattr__(self, name):
            raise KeyError(name)

    with pytest.raises(TstarError, match="optimizer must be"):
        Training.of(Broken())


def test_wrappers_are_looked_into():
    inner = optimizer(0.3)
    wrapper = types.SimpleNamespace(optimizer=types.SimpleNamespace(base_optimizer=inner))
    wrapper.optimizer.param_groups = inner.param_groups
    assert unwrapped(wrapper) is inner
    assert Training.of(wrapper).lr == 0.3


def test_the_group_of_the_output_layer_counts():
    body, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
    groups = [{"params": body.parameters(), "lr": 0.2}, {"params": head.parameters()}]
    made = torch.optim.SGD(groups, lr=0.1)
    assert Training.of(made, layer=head).lr == 0.1
    assert Training.of(made).lr == 0.2
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(made, 10)
    assert Training.of(made, scheduler=cosine, layer=head).lr == 0.1
    split = [{"params": [head.bias], "weight_decay": 0.0}, {"params": [head.weight]}]
    made = torch.optim.SGD(split, lr=0.1, weight_decay=5e-4)
    assert Training.of(made, layer=head).weight_decay == 5e-4  # that of the weights


@pytest.mark.parametrize(
    ("make", "lr"),
    [
        (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.7, total_steps=10), 0.7),
        (lambda o: torch.optim.lr_scheduler.CyclicLR(o, base_lr=0.01, max_lr=0.6), 0.6),
        (lambda o: torch.optim.lr_scheduler.LinearLR(o, start_factor=0.1), 0.1),
        (lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: min(1.0, step / 5)), 0.1),
        (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10), 0.1),
        (lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o), 0.1),
    ],
)
def test_the_highest_rate_of_a_scheduler(make, lr):
    opt = optimizer(0.1, momentum=0.9)
    scheduler = make(opt)
    found = Training.of(opt, scheduler=scheduler)
    assert found.lr == pytest.approx(lr)
    assert Training.of(opt, scheduler=scheduler, lr=0.05).lr == 0.05  # what is told counts more


@pytest.mark.parametrize(("body", "head"), [(1e-5, 1e-3), (1e-4, 3e-4), (0.1, 0.01)])
def test_a_head_with_a_rate_of_its_own_is_read_as_such(body, head):
    trunk, layer = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
    groups = [{"params": trunk.parameters(), "lr": body}, {"params": layer.parameters()}]
    made = torch.optim.AdamW(groups, lr=head)
    assert Training.of(made, layer=layer).lr == body
    assert own_head_rate(made, layer) == head
    made.param_groups[1]["lr"] = 2 * body  # as layer decay has it: one rate
    assert Training.of(made, layer=layer).lr == 2 * body
    assert own_head_rate(made, layer) is None


def test_the_arguments_of_transformers_are_read():
    hf = pytest.importorskip("transformers")
    how = dict(learning_rate=2e-5, weight_decay=0.1, num_train_epochs=3, optim="adamw_torch")
    args = hf.TrainingArguments(
        "x", per_device_train_batch_size=8, gradient_accumulation_steps=2, use_cpu=True, **how
    )
    found = Training.of(args=args, samples=160)
    assert (found.lr, found.weight_decay, found.family) == (2e-5, 0.1, "adam")
    assert (found.batch_size, found.steps, found.schedule) == (16, 30, "linear")
    assert Training.of(args=args, lr=1e-3).lr == 1e-3
    trainer = types.SimpleNamespace(args=args)  # what a Trainer has
    assert Training.of("sgd", batch_size=8, accumulate=trainer).batch_size == 16


def test_an_optimizer_without_a_rate_is_read():
    made = torch.optim.Adafactor([torch.zeros(3, 3, requires_grad=True)])
    made.param_groups[0]["lr"] = None
    assert Training.of(made).lr is None


def test_batches_of_one_sample_are_batches():
    assert Training.of("sgd", batch_size=1).batch_size == 1
