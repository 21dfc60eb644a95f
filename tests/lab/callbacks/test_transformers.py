"""The schedule in transformers' Trainer: the right T at every step or epoch."""

from dataclasses import replace

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


def test_a_model_that_was_left_on_advice_is_not_driven():
    from tstar.lab.callbacks.transformers import TemperatureCallback

    model = tstar.temper(nn.Linear(4, 3), tstar.recommend(nn.Linear(4, 3), norm=None))
    logs = {}
    each = TemperatureCallback(tstar.Schedule.warmup(2.0, steps=3))
    each.on_train_begin(None, None, None, model=model)
    each.on_log(None, None, None, logs=logs)
    assert logs == {}


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("known", [{"temperature": 2.0, "norm": "batch", "lr": 0.3}, {"lr": 0.3}, {"head_lr": 3.0}])  # fmt: skip
def test_an_advice_is_applied_at_the_start_and_folded_at_the_end(known, fold, tmp_path):
    from tstar.lab.callbacks.transformers import AdviceCallback

    class Plain(Model):
        def forward(self, x, labels):
            logits = self.out(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    rates = {}  # at the end of the warm-up

    class Watched(hf.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if state.global_step == 2:
                groups = kwargs["optimizer"].param_groups
                rates.update({p: group["lr"] for group in groups for p in group["params"]})

    model = Plain()
    told = tstar.recommend(model, head="out", optimizer="adamw", lr=0.1, steps=500, weight_decay=0.1)  # fmt: skip
    advice = replace(told, **{"lr": 0.1, "temperature": 1.0, "norm": None, "head_lr": None, **known})  # fmt: skip
    rows = [{"x": torch.randn(4), "labels": i % 3} for i in range(12)]
    arguments = hf.TrainingArguments(
        str(tmp_path), num_train_epochs=2, per_device_train_batch_size=4, use_cpu=True, save_strategy="no",
        report_to="none", disable_tqdm=True, learning_rate=0.1, warmup_steps=2, dataloader_pin_memory=False,
    )  # fmt: skip
    callbacks = [AdviceCallback(advice, fold), Watched()]
    hf.Trainer(model, arguments, train_dataset=rows, callbacks=callbacks).train()
    assert isinstance(model.out, nn.Linear) == (fold or not advice.surgery)
    weight = next(p for p in rates if p.shape == (3, 4))
    assert rates[weight] == pytest.approx(advice.head_lr or advice.lr)
