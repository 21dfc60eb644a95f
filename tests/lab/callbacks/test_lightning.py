"""The schedule in a Lightning trainer: the right T at every step, also after a resumed checkpoint."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tstar

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


def test_the_monitor_warns_of_a_norm_that_sees_nothing():
    from tstar.lab.callbacks.lightning import WatchCallback

    class Frozen(WatchCallback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            pl_module.model.norm.eval()

    assert len(fit(WatchCallback(), 1)) == 3
    with pytest.warns(tstar.TstarWarning, match="seen no batch"):
        fit(Frozen(), 1)


def test_a_model_that_was_left_on_advice_is_neither_driven_nor_watched(monkeypatch):
    from tstar.lab.callbacks.lightning import WatchCallback

    module, logged = Module(), []
    module.model = tstar.temper(nn.Linear(4, 3), tstar.recommend(nn.Linear(4, 3), norm=None))
    monkeypatch.setattr(module, "log", lambda *args: logged.append(args))
    trainer = SimpleNamespace(current_epoch=1)
    for each in (callback("epoch"), WatchCallback()):
        each.on_fit_start(trainer, module)
        each.on_train_epoch_start(trainer, module)
        each.on_train_epoch_end(trainer, module)
    assert logged == []


def test_an_advice_is_applied_at_the_start_and_folded_at_the_end():
    from tstar.lab.callbacks.lightning import AdviceCallback

    module, applied = Module(), []
    module.model = nn.Linear(4, 3)
    optimizer, scheduler = object(), object()
    trainer = SimpleNamespace(
        optimizers=[optimizer], lr_scheduler_configs=[SimpleNamespace(scheduler=scheduler)]
    )

    def apply(given, *others):
        applied.append(others)
        given.model = tstar.temper(given.model, 2.0)

    callback = AdviceCallback(SimpleNamespace(apply=apply))
    callback.on_fit_start(trainer, module)
    assert applied == [(optimizer, scheduler)]
    assert float(module.model.temperature) == 2.0
    callback.on_fit_end(trainer, module)
    assert type(module.model) is nn.Linear
