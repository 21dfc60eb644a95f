"""An advice and a schedule in transformers' Trainer."""

import pytest
import torch
from torch import nn

import tstar
from tests.networks import advised
from tstar.head import TemperedHead

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
        self.seen.append(float(getattr(self.out, "temperature", 1.0)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def train(model, folder, callbacks, **options):
    rows = [{"x": torch.randn(4), "labels": i % 3} for i in range(12)]
    arguments = hf.TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=4, use_cpu=True, save_strategy="no",
        report_to="none", disable_tqdm=True, logging_steps=1, dataloader_pin_memory=False, **options,
    )  # fmt: skip
    trainer = hf.Trainer(model, arguments, train_dataset=rows, callbacks=callbacks)
    trainer.train()
    return trainer.state.log_history


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
    schedule = TemperatureCallback(tstar.Schedule.linear(1.0, 7.0, steps=6), every)
    logged = []

    class Log(hf.TrainerCallback):  # as those of trackers, which come later
        def on_log(self, args, state, control, logs=None, **kwargs):
            logged.append(logs)

    train(model, tmp_path, [schedule, Log()], gradient_accumulation_steps=accumulate)
    assert model.seen == expected
    assert logged[0]["temperature"] == 1


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize(
    "recipe",
    [{"temperature": 2.0, "norm": "batch", "rate": 30.0}, {"rate": 30.0}],
)
def test_an_advice_is_applied_at_the_start_and_folded_on_request(recipe, fold, tmp_path):
    from tstar.lab.callbacks.transformers import AdviceCallback

    rates = {}  # at the end of the warm-up

    class Watched(hf.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, **kwargs):
            if state.global_step == 2:
                groups = kwargs["optimizer"].param_groups
                rates.update({p: group["lr"] for group in groups for p in group["params"]})

    model = Model()
    how = {"optimizer": "adamw", "lr": 1e-4, "steps": 500, "weight_decay": 0.1}
    advice = advised(model, recipe, head="out", **how)
    callbacks = [AdviceCallback(advice, fold), Watched()]
    train(model, tmp_path, callbacks, learning_rate=1e-4, warmup_steps=2)
    assert isinstance(model.out, TemperedHead) == (advice.surgery and not fold)
    weight = next(p for p in rates if p.shape == (3, 4))
    assert rates[weight] == pytest.approx(advice.lr)
