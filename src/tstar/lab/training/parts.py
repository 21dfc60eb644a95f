"""A data set made ready for one run: split, standardized, on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, guarded, shown
from tstar.lab import own
from tstar.lab.data import DataSet, split
from tstar.lab.data.augment import augmentation, standardizer
from tstar.lab.training.config import Config

_shares: dict[int, float] = {}  # of each GPU's memory that this process may take


class Rows:
    """Rows of an array, which stays where it is (a file, say) and is read a batch at a time.

    They are moved to a GPU once if they fit, else batch by batch.
    """

    def __init__(self, x: Tensor, rows: Tensor | None, device: torch.device) -> None:
        size = x.numel() * x.element_size()
        if device.type != "cpu" and (device.type != "cuda" or size < free_memory(device) / 2):
            x, rows = (x if rows is None else x[rows]).to(device), None
        self._x, self._rows, self.device = x, rows, device
        self.shape = (len(x) if rows is None else len(rows), *x.shape[1:])

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        if self._rows is not None:
            index = self._rows[index.cpu() if isinstance(index, Tensor) else index]
        elif isinstance(index, Tensor):
            index = index.to(self._x.device)
        return self._x[index].to(self.device)


def limit_memory(device: str, share: float) -> None:
    """Processes that share a GPU take their parts of its memory, however many start at once."""
    if device.startswith("cuda") and share < 1:
        index = torch.device(device).index or 0
        torch.cuda.set_per_process_memory_fraction(share, index)
        _shares[index] = share


def free_memory(device: torch.device) -> float:
    """Bytes of a GPU that this process may still take."""
    index = device.index or 0
    free, total = torch.cuda.mem_get_info(index)
    return min(free, _shares.get(index, 1.0) * total - torch.cuda.memory_reserved(index))


@dataclass(frozen=True)
class Parts:
    """The samples of a run, and what turns a batch of them into inputs."""

    x: Rows
    y: Tensor
    x_val: Rows
    y_val: Tensor
    x_test: Rows
    y_test: Tensor
    standardize: nn.Module
    augment: Callable[[Tensor, torch.Generator], Tensor] | None

    def ready(self, batch: Tensor) -> Tensor:
        """A batch as the model sees it when it is measured: standardized."""
        result: Tensor = self.standardize(batch)
        return result

    def distorted(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """A batch as the model sees it when it is trained: standardized, then augmented."""
        batch = self.ready(batch)
        return batch if self.augment is None else self.augment(batch, generator)

    @property
    def validation(self) -> tuple[Tensor, Tensor] | None:
        """(inputs, targets) of the held-out part, ready for the model; ``None`` without one."""
        return (self.ready(self.x_val[:]), self.y_val) if len(self.y_val) else None


def make_parts(dataset: DataSet, config: Config, seed: int) -> Parts:
    """Hold out the validation part and measure mean and deviation on what is left.

    Token ids are no quantities: they reach the model as they are.
    """
    device = pick_device(config.device)
    if config.samples is not None and config.samples < len(dataset.y_train):
        raise TstarError(
            f"samples = {config.samples} must be drawn from the data's {len(dataset.y_train)} "
            "before a training: data.subset(train=…); in a study it is done for you."
        )
    train, val = split(dataset, config.val_fraction, seed)
    augment, tokens = None, dataset.domain == "tokens"
    if isinstance(config.augment, str):
        augment = _own_augmentation(config.augment)
    elif config.augment:
        how = (config.padding, config.flip, config.rotation)
        augment = augmentation(dataset.name, dataset.domain, *how)
    # Measured on the CPU: the same numbers whatever the device.
    on_cpu = Rows(dataset.x_train, train, torch.device("cpu"))
    measured = nn.Identity() if tokens else standardizer(on_cpu, dataset.domain)
    return Parts(
        Rows(dataset.x_train, train, device),
        dataset.y_train[train].to(device),
        Rows(dataset.x_train, val, device),
        dataset.y_train[val].to(device),
        Rows(dataset.x_test, None, device),
        dataset.y_test.to(device),
        measured.to(device),
        augment,
    )


def _own_augmentation(reference: str) -> Callable[[Tensor, torch.Generator], Tensor]:
    yours = own.bound(reference, Tensor)

    def augment(batch: Tensor, generator: torch.Generator) -> Tensor:
        changed: Tensor = yours(batch, generator)
        if len(changed) != len(batch):
            raise TstarError(
                f"{reference} must return a tensor of {len(batch)} samples, got {shown(changed)}."
            )
        return changed

    return augment


def pick_device(name: str) -> torch.device:
    """``"auto"`` is the accelerator if there is one, else the CPU."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((kind for kind, found in there.items() if found), "cpu"))
    with guarded(f"device must be a torch device or 'auto', got {name!r}"):
        device = torch.device(name)
    if not there.get(device.type, True):
        raise TstarError(f"torch finds no device {name!r} here; use cpu or auto.")
    return device
