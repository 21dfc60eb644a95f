"""Lightning: the module holds the tempered model; a callback warms the temperature up."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data, tempered
from tstar.lab.callbacks.lightning import TemperatureCallback
from tstar.output_layer import tempered_heads


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = tempered()

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.model(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    module = Classifier()
    final = float(tempered_heads(module)["model.7"].temperature)
    warmup = tstar.Schedule.warmup(final, steps=max(1, epochs - 1))
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=[TemperatureCallback(warmup)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(train_set, batch_size=32, shuffle=True))
    return accuracy(tstar.fold(module.model.eval()), held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
