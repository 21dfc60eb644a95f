"""The training loop: what it learns, what it records, and that it repeats itself."""

import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tstar.errors import TstarError
from tstar.lab.data import load, split
from tstar.lab.measuring import calibration_error
from tstar.lab.recipe import Recipe
from tstar.lab.training import Config, evaluate, predict, train
from tstar.lab.training.loop import length
from tstar.lab.training.optim import lr_factor

QUICK = Config(epochs=2, batch_size=64, augment=False)


@pytest.fixture(scope="module")
def digits():
    return load("digits").subset(600, 200)


def make_model(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10)
        )


def plain_loop(model, data, config, seed, Optimizer, **options):
    """The protocol with torch's own pieces: what the loop must agree with."""
    rows, _ = split(data, config.val_fraction, seed)
    x, y = data.x_train[rows].float(), data.y_train[rows]
    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), correction=0, keepdim=True)
    x = (x - mean) / std
    optimizer = Optimizer(
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay, **options
    )
    batches = [n for n in range(0, len(y), config.batch_size) if len(y) - n > 1]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs * len(batches))
    order = torch.Generator().manual_seed(seed)
    for _ in range(config.epochs):
        model.train()
        rows = torch.randperm(len(y), generator=order)
        for start in batches:
            batch = rows[start : start + config.batch_size]
            z = model(x[batch])
            loss = F.cross_entropy(z, y[batch], label_smoothing=config.label_smoothing)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    right = model.eval()((data.x_test.float() - mean) / std).argmax(1) == data.y_test
    return right.double().mean().item()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "Optimizer", "options"),
    [
        ("sgd", torch.optim.SGD, {"momentum": 0.9}),
        # The same arithmetic: Adam makes steps of full size of rounding errors, where pixels never change.
        ("adamw", torch.optim.AdamW, {"fused": True}),
        ("adam", torch.optim.Adam, {"fused": True}),
    ],
)
def test_it_is_the_plain_loop(digits, name, Optimizer, options, smoothing):
    lr = 0.1 if name == "sgd" else 1e-3
    config = dataclasses.replace(QUICK, optimizer=name, lr=lr, label_smoothing=smoothing)
    ours, theirs = make_model(), make_model()
    result = train(ours, digits, config, seed=3)
    accuracy = plain_loop(theirs, digits, config, 3, Optimizer, **options)
    for a, b in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    assert result.test_accuracy == pytest.approx(accuracy, abs=1 / 200)


def test_the_same_arguments_give_the_same_result_bit_for_bit(digits):
    config = dataclasses.replace(QUICK, augment=True)
    first, second = (train(make_model(), digits, config, seed=1) for _ in range(2))
    assert first.curves == second.curves
    assert (first.val_accuracy, first.nll) == (second.val_accuracy, second.nll)
    other = train(make_model(), digits, config, seed=2)
    assert other.curves != first.curves


def test_the_callers_state_is_left_alone(digits):
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    model = make_model().eval()
    train(model, digits, dataclasses.replace(QUICK, epochs=1), seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert not any(module.training for module in model.modules())


def test_dropout_follows_the_seed_and_not_the_caller(digits):
    results = []
    for outside in (1, 2):
        torch.manual_seed(outside)
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), make_model()[1:])
        results.append(train(model, digits, QUICK, seed=0).nll)
    assert results[0] == results[1]


def test_neither_validation_nor_test_samples_are_trained_on(digits):
    reference = make_model()
    train(reference, digits, QUICK, seed=0)
    _, held_out = split(digits, QUICK.val_fraction, 0)
    x = digits.x_train.clone()
    x[held_out] = 255 - x[held_out]
    poisoned = dataclasses.replace(digits, x_train=x, x_test=255 - digits.x_test)
    model = make_model()
    train(model, poisoned, QUICK, seed=0)
    for a, b in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(a, b)
    # The check can fail: a training sample does matter.
    kept, _ = split(digits, QUICK.val_fraction, 0)
    x = digits.x_train.clone()
    x[kept[0]] = 255 - x[kept[0]]
    train(model := make_model(), dataclasses.replace(digits, x_train=x), QUICK, seed=0)
    assert not torch.equal(model[1].weight, reference[1].weight)


def test_the_last_epoch_counts_and_not_the_best(digits):
    # A learning rate that wrecks the model late: the result is the wreck.
    recipe = Recipe(
        make_model(),
        lambda logits, targets, inputs: F.cross_entropy(logits, targets),
        on_epoch=lambda epoch, epochs: 1.0 if epoch < epochs else 300.0,
    )
    config = dataclasses.replace(QUICK, epochs=5, schedule="constant", lr=0.05, test_curve=True)
    result = train(recipe, digits, config)
    val = result.curves["val_accuracy"]
    assert result.val_accuracy == val[-1] < max(val)
    assert result.test_accuracy == result.curves["test_accuracy"][-1]
    assert result.curves["lr"] == pytest.approx([0.05] * 4 + [15.0])


def test_without_a_validation_part_there_is_no_validation_score(digits):
    result = train(make_model(), digits, dataclasses.replace(QUICK, val_fraction=0.0), seed=0)
    assert result.val_accuracy is None
    assert result.val_loss is None
    assert 0.1 < result.test_accuracy <= 1


def test_a_loss_that_becomes_nan_is_a_result(digits):
    config = dataclasses.replace(QUICK, lr=1e30, epochs=3)
    result = train(make_model(), digits, config, seed=0)
    assert result.status == "diverged"
    assert result.test_accuracy is result.val_accuracy is result.nll is None
    assert result.steps > 0


def test_weights_that_break_in_the_very_last_step_are_a_diverged_run_too(digits):
    model = make_model()

    def loss(logits, targets, inputs):
        return F.cross_entropy(logits, targets)

    def on_batch(model, inputs, targets, lr):
        on_batch.calls += 1
        if on_batch.calls == length(540, QUICK)[0]:
            model[1].weight.register_hook(lambda gradient: gradient * math.nan)

    on_batch.calls = 0
    result = train(Recipe(model, loss, on_batch=on_batch), digits, QUICK, seed=0)
    assert all(map(math.isfinite, result.curves["train_loss"]))
    assert result.status == "diverged"
    assert result.test_accuracy is None


@pytest.mark.parametrize(
    ("samples", "batch", "epochs", "steps", "expected"),
    [
        (128, 64, 3, None, (6, 3)),
        (129, 64, 3, None, (6, 3)),  # a last batch of one sample is left out
        (130, 64, 3, None, (9, 3)),
        (128, 64, 3, 5, (5, 3)),  # steps in place of epochs
        (10, 64, 1, None, (1, 1)),
    ],
)
def test_the_length_of_a_run(samples, batch, epochs, steps, expected):
    assert length(samples, Config(batch_size=batch, epochs=epochs, steps=steps)) == expected


def test_a_last_batch_of_one_sample_does_no_harm(digits):
    data = digits.subset(129 + 16, 50)
    config = Config(epochs=2, batch_size=64, val_fraction=0.0, augment=False)
    data = dataclasses.replace(data, x_train=data.x_train[:129], y_train=data.y_train[:129])
    result = train(make_model(), data, config)
    assert result.steps == 4


def test_steps_end_a_run_within_an_epoch(digits):
    result = train(make_model(), digits, dataclasses.replace(QUICK, steps=12), seed=0)
    assert (result.steps, result.epochs) == (12, 2)
    assert len(result.curves["train_loss"]) == 2


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_the_schedule_is_torchs(schedule):
    steps, config = 20, Config(schedule=schedule, lr=0.3)
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.3)
    kinds = torch.optim.lr_scheduler
    theirs = {
        "cosine": lambda: kinds.CosineAnnealingLR(optimizer, steps),
        "linear": lambda: kinds.LinearLR(optimizer, 1.0, 1e-12, steps),
        "constant": lambda: kinds.ConstantLR(optimizer, 1.0),
    }[schedule]()
    for step in range(steps):
        (rate,) = theirs.get_last_lr()
        assert 0.3 * lr_factor(step, steps, config) == pytest.approx(rate, abs=1e-9)
        optimizer.step()
        theirs.step()


def test_the_warm_up_rises_to_the_top_and_then_the_schedule_begins():
    config = Config(warmup=0.25)
    factors = [lr_factor(step, 8, config) for step in range(8)]
    assert factors[:3] == [0.5, 1.0, 1.0]
    assert factors[2:] == sorted(factors[2:], reverse=True)


def test_a_recipes_hooks_are_called_as_promised(digits):
    calls = {"epoch": [], "batch": 0, "finish": [], "loss": 0}
    extra = nn.ModuleList([nn.Linear(1, 1, bias=False)])
    start = extra[0].weight.detach().clone()

    def loss(logits, targets, inputs):
        assert inputs.shape == (len(targets), 1, 8, 8)
        return F.cross_entropy(logits, targets) + extra[0].weight.square().sum()

    def on_batch(model, inputs, targets, lr):
        calls["batch"] += 1

    def finish(model, inputs, targets):
        calls["finish"].append((len(inputs), len(targets)))
        return {"found": 7.0}

    recipe = Recipe(
        make_model(),
        loss,
        extra=extra,
        on_epoch=lambda epoch, epochs: calls["epoch"].append((epoch, epochs)) or 0.5,
        on_batch=on_batch,
        finish=finish,
        report=lambda: {"learned": 3.0},
    )
    result = train(recipe, digits, QUICK, seed=0)
    assert calls["epoch"] == [(1, 2), (2, 2)]
    assert calls["batch"] == result.steps
    assert calls["finish"] == [(60, 60)]
    assert result.extra == {"found": 7.0, "learned": 3.0}
    assert result.curves["lr"][0] < 0.5 * QUICK.lr
    assert extra[0].weight.abs() < start.abs()


def test_a_method_that_needs_validation_data_says_so(digits):
    recipe = Recipe(make_model(), lambda *_: torch.zeros(()), finish=lambda *_: {})
    with pytest.raises(TstarError, match="val_fraction > 0 must hold"):
        train(recipe, digits, dataclasses.replace(QUICK, val_fraction=0.0))


def test_autocast_trains_close_to_single_precision(digits):
    config = dataclasses.replace(QUICK, epochs=4)
    exact = train(make_model(), digits, config, seed=0)
    rounded = train(make_model(), digits, dataclasses.replace(config, amp=True), seed=0)
    assert rounded.nll != exact.nll
    assert rounded.nll == pytest.approx(exact.nll, rel=0.1)


@pytest.mark.slow
def test_a_compiled_model_trains_alike(digits):
    exact = train(make_model(), digits, QUICK, seed=0)
    compiled = train(make_model(), digits, dataclasses.replace(QUICK, compile=True), seed=0)
    assert compiled.nll == pytest.approx(exact.nll, rel=1e-3)


def test_very_long_trainings_are_measured_now_and_then(digits, monkeypatch):
    config = dataclasses.replace(QUICK, epochs=7)
    full = train(make_model(), digits, config)
    assert "epoch" not in full.curves
    monkeypatch.setattr("tstar.lab.training.loop.MOST_POINTS", 3)
    thin = train(make_model(), digits, config)
    assert thin.curves["epoch"] == [3, 6, 7]
    for name, values in full.curves.items():  # the same training, looked at less often
        assert thin.curves[name] == [values[i - 1] for i in (3, 6, 7)]
    assert thin.test_accuracy == full.test_accuracy


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 10])
def test_calibration_error_is_that_of_torchmetrics(seed, classes):
    functional = pytest.importorskip("torchmetrics.functional.classification")
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(500, classes, generator=random)
    targets = torch.randint(classes, (500,), generator=random)
    probabilities = logits.softmax(1)
    theirs = functional.multiclass_calibration_error(
        probabilities, targets, num_classes=classes, n_bins=15, norm="l1"
    )
    assert calibration_error(probabilities, targets) == pytest.approx(float(theirs), abs=1e-6)


def test_scores_are_the_textbook_ones():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    scores = evaluate(logits, torch.tensor([0, 1, 1]))
    assert scores.accuracy == pytest.approx(2 / 3)
    by_hand = -logits.log_softmax(1)[[0, 1, 2], [0, 1, 1]].sum()
    assert scores.loss == pytest.approx(float(by_hand) / 3)


@pytest.mark.parametrize("training", [True, False])
def test_predicting_uses_eval_mode_and_restores_the_mode(training):
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 3)).train(training)
    model[1].eval()  # a frozen norm stays frozen
    x = torch.randn(10, 4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    logits = predict(model, x)
    assert [module.training for module in model] == [training, False, training]
    assert model.training is training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()
    torch.testing.assert_close(logits, model(x).detach())
