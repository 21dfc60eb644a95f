"""param_groups in configure_optimizers, which Lightning calls after it has restored the weights.

packages: lightning
outcome: refuses "Pass rescale=False to go on"
slow: true
"""

import tempfile

import lightning as L
import torch
import toy
from torch import nn

import tstar


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = tstar.temper(toy.mlp(), 1.0)

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(tstar.param_groups(self.net, 4.0, lr=0.1))


def trainer(epochs):
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False,
    )  # fmt: skip


first = trainer(1)
first.fit(Module(), toy.loader(toy.points()))
with tempfile.TemporaryDirectory() as folder:
    first.save_checkpoint(f"{folder}/last.ckpt")
    trainer(2).fit(
        Module(), toy.loader(toy.points()), ckpt_path=f"{folder}/last.ckpt", weights_only=True
    )
