"""An advice and a schedule in a Lightning trainer, also after a resumed checkpoint."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tstar
from tests.networks import advised
from tstar.head import TemperedHead
from tstar.lab.cli import app as program
from tstar.lab.cli import fold_commands  # noqa: F401  registers the command

L = pytest.importorskip("lightning")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]

QUIET = {
    "accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False,
}  # fmt: skip


def batches():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 4, generator=generator)
    return DataLoader(TensorDataset(x, torch.arange(12) % 3), batch_size=4)


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
    options = {"enable_checkpointing": False, "accumulate_grad_batches": accumulate}
    trainer = L.Trainer(max_epochs=epochs, callbacks=[callback], **options, **QUIET)
    trainer.fit(module, batches(), ckpt_path=resume, weights_only=True)
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
    with pytest.raises(tstar.TstarError, match="interval"):
        callback("hour")


def test_a_resumed_run_goes_on_at_its_temperature(tmp_path):
    fit(callback("epoch"), 2, folder=tmp_path)
    assert fit(callback("epoch"), 3, resume=tmp_path / "last.ckpt") == [3.0] * 3


class Watched(L.Callback):
    """The rates of a training's first step, and whether its model was tempered."""

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        if trainer.global_step == 0:
            self.tempered = isinstance(pl_module.net[2], TemperedHead)
            self.rates = {p: g["lr"] for g in optimizer.param_groups for p in g["params"]}


class Net(L.LightningModule):
    """A plain network, and a frozen twin of it."""

    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def test_step(self, batch):
        self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, weight_decay=0.1)
        decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        return [optimizer], [{"scheduler": decay, "interval": "step"}]


RECIPES = {
    "surgery": {"temperature": 2.0, "norm": "batch", "rate": 30.0},
    "rate": {"rate": 30.0},
}


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("recipe", RECIPES)
def test_an_advice_is_applied_at_the_start_and_folded_on_request(recipe, fold):
    from tstar.lab.callbacks.lightning import AdviceCallback

    module, seen = Net(), Watched()
    how = {"optimizer": "sgd", "lr": 0.1, "steps": 500, "weight_decay": 0.1}
    advice = advised(module.net, RECIPES[recipe], **how)
    callbacks = [AdviceCallback(advice, fold=fold), seen]
    trainer = L.Trainer(max_epochs=1, callbacks=callbacks, enable_checkpointing=False, **QUIET)
    trainer.fit(module, batches())
    assert isinstance(module.net[2], TemperedHead) == (advice.surgery and not fold)
    assert type(module.teacher[2]) is nn.Linear
    assert seen.tempered == advice.surgery
    assert seen.rates[module.net[0].weight] == pytest.approx(advice.lr)


def test_the_best_checkpoint_is_tested_folded_and_loaded_into_the_plain_class(tmp_path):
    """What a script does after ``fit``: test(ckpt_path="best"), tstar.fold, tstar fold, load."""
    from lightning.pytorch.callbacks import ModelCheckpoint
    from typer.testing import CliRunner

    from tstar.lab.callbacks.lightning import AdviceCallback

    module = Net()
    advice = advised(module.net, RECIPES["surgery"], optimizer="sgd", lr=0.1, steps=500)
    callbacks = [AdviceCallback(advice), ModelCheckpoint(tmp_path)]
    trainer = L.Trainer(max_epochs=2, callbacks=callbacks, **QUIET)
    trainer.fit(module, batches())
    trainer.test(module, batches(), ckpt_path="best", verbose=False, weights_only=True)
    x = next(iter(batches()))[0]
    logits = module.eval().net(x)
    for _ in range(2):  # a second time it is folded already
        module = tstar.fold(module)
        torch.testing.assert_close(module.net(x), logits)
    best, plain = trainer.checkpoint_callback.best_model_path, tmp_path / "plain.ckpt"
    CliRunner().invoke(program.app, ["fold", best, "-o", str(plain)])
    loaded = Net.load_from_checkpoint(plain, weights_only=True).eval()
    torch.testing.assert_close(loaded.net(x), logits)
    trainer = L.Trainer(enable_checkpointing=False, **QUIET)
    trainer.test(Net(), batches(), ckpt_path=plain, verbose=False, weights_only=True)


def test_a_checkpoint_of_a_module_that_tempers_itself_is_loaded(tmp_path):
    fit(callback("epoch"), 1, folder=tmp_path)
    loaded = Module.load_from_checkpoint(tmp_path / "last.ckpt", weights_only=True)
    assert float(loaded.model.temperature) == 1.0
    assert int(loaded.model.norm.num_batches_tracked) == 3


def test_an_advice_for_another_model_or_for_one_of_two_is_refused():
    from tstar.lab.callbacks import part_for

    module = Net()
    advice = advised(module.net, RECIPES["rate"])
    assert part_for(advice, module) is module.net
    for other, count in ((Module(), 0), (nn.ModuleList([Net(), Net()]), 2)):
        with pytest.raises(tstar.TstarError, match=f"must hold one .* got {count} with an output"):
            part_for(advice, other)
