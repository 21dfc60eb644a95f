"""Lightning with a schedule, a monitor, accumulated gradients and a resumed checkpoint.

packages: lightning
outcome: folds
slow: true
"""

import tempfile

import lightning as L
import torch
import toy
from torch import nn

import tstar
from tstar.lab.callbacks.lightning import TemperatureCallback

data = toy.points()


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = tstar.temper(toy.mlp(), 4.0)

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def trainer(epochs):
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, accumulate_grad_batches=2,
        enable_model_summary=False, enable_checkpointing=False,
        callbacks=[TemperatureCallback(tstar.Schedule.warmup(4.0, steps=4))],
    )  # fmt: skip


first = trainer(4)
first.fit(Module(), toy.loader(data))
with tempfile.TemporaryDirectory() as folder:
    first.save_checkpoint(f"{folder}/last.ckpt")
    module = Module()
    trainer(8).fit(module, toy.loader(data), ckpt_path=f"{folder}/last.ckpt", weights_only=True)
model = module.net
assert float(model[2].temperature) == 4.0
accuracy, x = toy.accuracy(model, data), data[0]
plain = tstar.fold(model)
