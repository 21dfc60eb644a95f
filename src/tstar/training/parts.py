"""A data set made ready for one run: split, standardised, on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tstar.data import split
from tstar.data.augment import Augment, default, standardizer
from tstar.errors import TstarError
from tstar.training.config import Config

if TYPE_CHECKING:
    from tstar.data import DataSet


@dataclass(frozen=True)
class Parts:
    """Raw samples in memory, where the model is, and what turns a batch of them into inputs."""

    x: Tensor
    y: Tensor
    x_val: Tensor
    y_val: Tensor
    x_test: Tensor
    y_test: Tensor
    standardize: nn.Module
    augment: Augment | None

    def ready(self, batch: Tensor) -> Tensor:
        """A batch as the model sees it when it is measured: standardised."""
        result: Tensor = self.standardize(batch)
        return result

    def distorted(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """A batch as the model sees it when it is trained: standardised, then augmented."""
        batch = self.ready(batch)
        return batch if self.augment is None else self.augment(batch, generator)

    @property
    def validation(self) -> tuple[Tensor, Tensor] | None:
        """(inputs, targets) of the held-out part, ready for the model; ``None`` without one."""
        return (self.ready(self.x_val), self.y_val) if len(self.y_val) else None


def make_parts(dataset: DataSet, config: Config, seed: int) -> Parts:
    """Hold out the validation part and measure mean and deviation on what is left.

    Token ids are no quantities: they reach the model as they are.
    """
    device = pick_device(config.device)
    train, val = split(dataset, config.val_fraction, seed)
    x = dataset.x_train[train]
    augment = None
    tokens = dataset.domain == "tokens"
    if config.augment and not tokens:
        asked = {"padding": config.padding, "flip": config.flip, "rotation": config.rotation}
        given = {name: value for name, value in asked.items() if value is not None}
        augment = default(dataset.name, dataset.domain, **given)
    return Parts(
        x.to(device),
        dataset.y_train[train].to(device),
        dataset.x_train[val].to(device),
        dataset.y_train[val].to(device),
        dataset.x_test.to(device),
        dataset.y_test.to(device),
        nn.Identity() if tokens else standardizer(x, dataset.domain).to(device),
        augment,
    )


def pick_device(name: str) -> torch.device:
    """``"auto"`` is the accelerator where there is one, else the CPU."""
    if name != "auto":
        try:
            return torch.device(name)
        except RuntimeError as error:
            raise TstarError(f"device must be a torch device or 'auto', got {name!r}.") from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
