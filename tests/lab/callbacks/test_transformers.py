"""The schedule in transformers' Trainer: the right T at every step or epoch."""

import pytest
import torch
from torch import nn

import tstar

hf = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
        self.seen = []

    def forward(self, x, labels):
        logits = self.out(x)
        self.seen.append(float(self.out.temperature))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.mark.parametrize(
    ("every", "accumulate", "expected"),
    [
        ("step", 1, [1, 2, 3, 4, 5, 6]),
        ("epoch", 1, [1, 1, 1, 2, 2, 2]),
        ("step", 3, [1, 1, 1, 2, 2, 2]),
    ],
)
def test_the_temperature_of_every_step(tmp_path, every, accumulate, expected):
    from tstar.lab.callbacks.transformers import TemperatureCallback

    model = tstar.temper(Model(), 9.0, head="out")
    rows = [{"x": torch.randn(4), "labels": i % 3} for i in range(12)]
    arguments = hf.TrainingArguments(
        str(tmp_path), num_train_epochs=2, per_device_train_batch_size=4, use_cpu=True, save_strategy="no",
        report_to="none", disable_tqdm=True, logging_steps=1, gradient_accumulation_steps=accumulate,
        dataloader_pin_memory=False,
    )  # fmt: skip
    schedule = TemperatureCallback(tstar.Schedule.linear(1.0, 7.0, steps=6), every)
    trainer = hf.Trainer(model, arguments, train_dataset=rows, callbacks=[schedule])
    trainer.train()
    assert model.seen == expected


def test_the_monitor_logs_and_warns(tmp_path):
    from tstar.lab.callbacks.transformers import WatchCallback

    model = tstar.temper(Model(), 9.0, head="out")
    rows = [{"x": torch.randn(4), "labels": i % 3} for i in range(12)]
    arguments = hf.TrainingArguments(
        str(tmp_path), num_train_epochs=2, per_device_train_batch_size=1, use_cpu=True, save_strategy="no",
        report_to="none", disable_tqdm=True, logging_steps=1, learning_rate=0.1, dataloader_pin_memory=False,
    )  # fmt: skip
    monitor = WatchCallback()
    trainer = hf.Trainer(model, arguments, train_dataset=rows, callbacks=[monitor])
    with pytest.warns(tstar.TstarWarning, match="seen no batch"):
        trainer.train()
    logs = {}
    monitor.on_log(None, None, None, logs=logs)
    assert logs["moved/out"] > 0


def test_a_model_that_was_left_on_advice_is_neither_driven_nor_watched():
    from tstar.lab.callbacks.transformers import TemperatureCallback, WatchCallback

    model = tstar.temper(nn.Linear(4, 3), tstar.recommend(nn.Linear(4, 3), norm=None))
    logs = {}
    for each in (TemperatureCallback(tstar.Schedule.warmup(2.0, steps=3)), WatchCallback()):
        each.on_train_begin(None, None, None, model=model)
        each.on_epoch_end(None, None, None)
        each.on_log(None, None, None, logs=logs)
    assert logs == {}


@pytest.mark.parametrize("fold", [True, False])
def test_an_advice_is_applied_at_the_start_and_folded_at_the_end(fold):
    from tstar.lab.callbacks.transformers import AdviceCallback

    model, applied = Model(), []

    def apply(given, *others):
        applied.append(others)
        given.out = tstar.temper(given.out, 2.0)

    class Advice:
        pass

    advice = Advice()
    advice.apply = apply
    callback = AdviceCallback(advice, fold)
    callback.on_train_begin(None, None, None, model=model, optimizer="o", lr_scheduler="s")
    assert applied == [("o", "s")]
    callback.on_train_end(None, None, None, model=model)
    assert (type(model.out) is nn.Linear) == fold
