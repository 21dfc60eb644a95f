"""param_groups in configure_optimizers, which Lightning calls after it has restored the weights.

packages: lightning
outcome: trains
slow: true
"""

import tempfile

import lightning as L
import torch
import toy
from torch import nn

import tstar

data = toy.points()


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = tstar.temper(toy.mlp(), 1.0)

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        self.start = self.net[2].weight.detach().clone()
        new = self.trainer.ckpt_path is None  # a head that goes on was divided before
        groups = tstar.param_groups(self.net, 4.0, lr=0.1, rescale=new)
        return torch.optim.SGD(groups, momentum=0.9)


def trainer(epochs):
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False,
    )  # fmt: skip


first, module, resumed = trainer(3), Module(), Module()
first.fit(module, toy.loader(data))
with tempfile.TemporaryDirectory() as folder:
    first.save_checkpoint(f"{folder}/last.ckpt")
    last = f"{folder}/last.ckpt"
    trainer(6).fit(resumed, toy.loader(data), ckpt_path=last, weights_only=True)
assert torch.equal(resumed.start, module.net[2].weight)
accuracy = toy.accuracy(resumed.net, data)
