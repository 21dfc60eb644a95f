"""The schedule in a Lightning trainer: the right T at every step, also after a resumed checkpoint."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tstar
from tstar.head import TemperedHead

L = pytest.importorskip("lightning")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = tstar.temper(nn.Linear(4, 3), 9.0)
        self.seen = []

    def training_step(self, batch):
        self.seen.append(float(self.model.temperature))
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(callback, epochs, folder=None, resume=None, accumulate=1):
    module = Module()
    trainer = L.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=[callback], logger=False, enable_progress_bar=False,
        enable_checkpointing=False, enable_model_summary=False, accumulate_grad_batches=accumulate,
    )  # fmt: skip
    data = TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
    trainer.fit(module, DataLoader(data, batch_size=4), ckpt_path=resume, weights_only=True)
    if folder:
        trainer.save_checkpoint(folder / "last.ckpt")
    return module.seen


def callback(every):
    from tstar.lab.callbacks.lightning import TemperatureCallback

    return TemperatureCallback(tstar.Schedule.linear(1.0, 7.0, steps=6), every)


def test_epochs_steps_and_accumulated_steps():
    assert fit(callback("epoch"), 2) == [1.0] * 3 + [2.0] * 3
    assert fit(callback("step"), 2) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert fit(callback("step"), 1, accumulate=3) == [1.0, 1.0, 1.0]


def test_a_resumed_run_goes_on_at_its_temperature(tmp_path):
    fit(callback("epoch"), 2, folder=tmp_path)
    assert fit(callback("epoch"), 3, resume=tmp_path / "last.ckpt") == [3.0] * 3


def test_an_unknown_interval_is_refused():
    with pytest.raises(tstar.TstarError, match="interval"):
        callback("hour")


def test_a_model_that_was_left_on_advice_is_not_driven(monkeypatch):
    module, logged = Module(), []
    module.model = tstar.temper(nn.Linear(4, 3), tstar.recommend(nn.Linear(4, 3), norm=None))
    monkeypatch.setattr(module, "log", lambda *args: logged.append(args))
    trainer = SimpleNamespace(current_epoch=1)
    each = callback("epoch")
    each.on_fit_start(trainer, module)
    each.on_train_epoch_start(trainer, module)
    assert logged == []


def advised(model, **known):
    told = tstar.recommend(model, optimizer="sgd", lr=0.1, steps=500, weight_decay=0.1)
    return replace(told, **{"lr": 0.1, "weight_decay": 0.1, "temperature": 1.0, "norm": None, "head_lr": None, **known})  # fmt: skip


class Watched(L.Callback):
    """The rates of a training's first step, and whether its model was tempered."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        if trainer.global_step == 0:
            self.tempered = isinstance(pl_module.net[2], TemperedHead)
            self.rates = {p: g["lr"] for g in optimizer.param_groups for p in g["params"]}


class Net(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.teacher, self.net = copy.deepcopy(net), net

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, weight_decay=0.1)
        decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        return [optimizer], [{"scheduler": decay, "interval": "step"}]


@pytest.mark.parametrize("known", [{"temperature": 2.0, "norm": "batch", "lr": 0.3}, {"lr": 0.3}, {"head_lr": 3.0}])  # fmt: skip
def test_an_advice_is_applied_at_the_start_and_folded_at_the_end(known):
    """The advice is for the model inside, of which the module has a twin too."""
    from tstar.lab.callbacks.lightning import AdviceCallback

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    advice, module, seen = advised(net, **known), Net(net), Watched()
    trainer = L.Trainer(
        max_epochs=1, accelerator="cpu", callbacks=[AdviceCallback(advice), seen], logger=False,
        enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
    )  # fmt: skip
    data = TensorDataset(torch.randn(12, 4), torch.arange(12) % 3)
    trainer.fit(module, DataLoader(data, batch_size=4))
    assert type(net[2]) is type(module.teacher[2]) is nn.Linear
    assert seen.tempered == advice.surgery
    assert seen.rates[net[0].weight] == pytest.approx(advice.lr)
    weight = next(p for p in seen.rates if p.shape == (3, 8))
    assert seen.rates[weight] == pytest.approx(advice.head_lr or advice.lr)


def test_an_advice_for_another_model_is_refused():
    from tstar.lab.callbacks import part_for

    with pytest.raises(tstar.TstarError, match="must hold the model"):
        part_for(advised(nn.Sequential(nn.Linear(4, 5))), Module())
