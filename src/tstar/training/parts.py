"""A data set made ready for one run: split, standardized, on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tstar import own
from tstar.data import split
from tstar.data.augment import default, standardizer
from tstar.data.images import streamed
from tstar.errors import TstarError
from tstar.training.config import Config

if TYPE_CHECKING:
    from tstar.data import DataSet


class Samples:
    """Rows of an array, which stays where it is (a file, say) and is read a batch at a time.

    With a GPU the rows are moved there once where they fit, else batch by batch. Images that do not fit into memory
    are decoded batch by batch.
    """

    def __init__(self, x: Tensor, rows: Tensor | None, device: torch.device) -> None:
        self._images = streamed(x)
        if device.type != "cpu" and self._images is None and _fits(x, device):
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

    def batches(self, indices: Sequence[Tensor | slice]) -> Iterator[Tensor]:
        """``self[index] for index in indices``; images that do not fit into memory are decoded ahead."""
        if self._images is None:
            yield from (self[index] for index in indices)
            return
        rows = indices if self._rows is None else [self._rows[index] for index in indices]
        for batch in self._images.batches(rows):
            yield batch.to(self.device)

    def dim(self) -> int:
        return len(self.shape)

    @property
    def streamed(self) -> bool:
        return self._images is not None


class Prepared:
    """Samples as the model sees them, decoded and standardized when they are asked for."""

    def __init__(self, samples: Samples, prepare: Callable[[Tensor], Tensor]) -> None:
        self._samples, self._prepare = samples, prepare
        self.shape, self.device = samples.shape, samples.device

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self._prepare(self._samples[index])

    def batches(self, indices: Sequence[Tensor | slice]) -> Iterator[Tensor]:
        return map(self._prepare, self._samples.batches(indices))


def _fits(x: Tensor, device: torch.device) -> bool:
    """Whether an array takes less than half of what is free on a GPU."""
    if device.type != "cuda":
        return True
    return x.numel() * x.element_size() < torch.cuda.mem_get_info(device)[0] / 2


@dataclass(frozen=True)
class Parts:
    """The samples of a run, and what turns a batch of them into inputs."""

    x: Samples
    y: Tensor
    x_val: Samples
    y_val: Tensor
    x_test: Samples
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
        """(inputs, targets) of the held-out part, ready for the model; ``None`` without one.

        Where images do not fit into memory, the inputs are read as a tensor is, a batch at a time.
        """
        if not len(self.y_val):
            return None
        part: Any = Prepared(self.x_val, self.ready) if self.x_val.streamed else None
        return (self.ready(self.x_val[:]) if part is None else part), self.y_val


def make_parts(dataset: DataSet, config: Config, seed: int) -> Parts:
    """Hold out the validation part and measure mean and deviation on what is left.

    Token ids are no quantities: they reach the model as they are.
    """
    device = pick_device(config.device)
    train, val = split(dataset, config.val_fraction, seed)
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None
    tokens = dataset.domain == "tokens"
    if isinstance(config.augment, str):
        augment = _own_augmentation(config.augment)
    elif config.augment and not tokens:
        asked = {"padding": config.padding, "flip": config.flip, "rotation": config.rotation}
        given = {name: value for name, value in asked.items() if value is not None}
        augment = default(dataset.name, dataset.domain, **given)
    # Measured on the CPU: the same numbers whatever the device.
    on_cpu = Samples(dataset.x_train, train, torch.device("cpu"))
    measured = nn.Identity() if tokens else standardizer(on_cpu, dataset.domain)
    return Parts(
        Samples(dataset.x_train, train, device),
        dataset.y_train[train].to(device),
        Samples(dataset.x_train, val, device),
        dataset.y_train[val].to(device),
        Samples(dataset.x_test, None, device),
        dataset.y_test.to(device),
        measured.to(device),
        augment,
    )


def _own_augmentation(reference: str) -> Callable[[Tensor, torch.Generator], Tensor]:
    function = own.load(reference)

    def augment(batch: Tensor, generator: torch.Generator) -> Tensor:
        changed = own.call(reference, function, batch, generator)
        if not isinstance(changed, Tensor) or len(changed) != len(batch):
            raise TstarError(
                f"{reference} must return a tensor of {len(batch)} samples, got {describe(changed)}."
            )
        return changed

    return augment


def describe(value: object) -> str:
    """What a part returned, for an error message."""
    if isinstance(value, Tensor):
        return f"one of shape {tuple(value.shape)}"
    return f"{type(value).__name__} {' '.join(repr(value).split())[:80]}"


def pick_device(name: str) -> torch.device:
    """``"auto"`` is the accelerator where there is one, else the CPU."""
    if name != "auto":
        try:
            device = torch.device(name)
        except RuntimeError as error:
            raise TstarError(f"device must be a torch device or 'auto', got {name!r}.") from error
        if (device.type == "cuda" and not torch.cuda.is_available()) or (
            device.type == "mps" and not torch.backends.mps.is_available()
        ):
            raise TstarError(f"torch finds no device {name!r} here; use cpu or auto.")
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
