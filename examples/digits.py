"""What the examples share: real images that come with scikit-learn, a small network, a plain loop."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def data(samples: int = 1797) -> tuple[DataLoader, TensorDataset]:
    """Handwritten digits, 8×8 pixels in [0, 1]: four fifths to train on, one fifth to look at."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:samples]
    x = torch.tensor(images, dtype=torch.float32)[order].reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels, dtype=torch.long)[order]
    cut = samples * 4 // 5
    train_set = TensorDataset(x[:cut], y[:cut])
    return DataLoader(train_set, batch_size=32, shuffle=True), TensorDataset(x[cut:], y[cut:])


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader,
    epochs: int,
    after: Callable[[], object] = lambda: None,
) -> None:
    """A training as anybody writes it; ``after`` is called after each step."""
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            after()


@torch.no_grad()
def accuracy(model: nn.Module, held_out: TensorDataset) -> float:
    x, y = held_out.tensors
    output = model.eval()(x)
    logits: Tensor = getattr(output, "logits", output)
    return (logits.argmax(-1) == y).float().mean().item()


def show(plain: float, advised: float) -> None:
    print(f"accuracy: plain {plain:.3f}, as advised {advised:.3f}")
