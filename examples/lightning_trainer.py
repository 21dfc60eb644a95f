"""Lightning: a callback applies the advice when the training starts; the module stays as it is written."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor

import tstar
from digits import accuracy, data, network, show
from tstar.lab.callbacks.lightning import AdviceCallback


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = network()

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.model(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def run(advised: bool, samples: int, epochs: int) -> float:
    loader, held_out = data(samples)
    module, callbacks = Classifier(), []
    if advised:
        how = {"optimizer": module.configure_optimizers(), "epochs": epochs}
        advice = tstar.recommend(module.model, loader, **how)
        print(advice)
        callbacks.append(AdviceCallback(advice))
    trainer = L.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=callbacks, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, loader)
    return accuracy(tstar.fold(module.eval()).model, held_out)


def main(samples: int = 1797, epochs: int = 5) -> tuple[float, float]:
    return run(False, samples, epochs), run(True, samples, epochs)


if __name__ == "__main__":
    show(*main())
