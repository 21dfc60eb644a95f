"""What the examples share: real images that come with scikit-learn, and one small tempered network."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import tstar


def data(samples: int = 1797) -> tuple[TensorDataset, TensorDataset]:
    """Handwritten digits, 8×8 pixels in [0, 1]: four fifths to train on, one fifth to look at."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:samples]
    x = torch.tensor(images, dtype=torch.float32)[order].reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels, dtype=torch.long)[order]
    cut = samples * 4 // 5
    return TensorDataset(x[:cut], y[:cut]), TensorDataset(x[cut:], y[cut:])


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def tempered() -> nn.Module:
    """The network at the temperature for its width, its ten classes and the short training of the examples."""
    model = network()
    head = tstar.find_head(model)
    how = {"optimizer": "sgd", "lr": 0.1, "steps": 225, "batch_size": 32}
    T = tstar.temperature(head.num_features, head.num_classes, **how)
    return tstar.temper(model, T)


@torch.no_grad()
def accuracy(model: nn.Module, held_out: TensorDataset) -> float:
    x, y = held_out.tensors
    was_training = model.training
    output = model.eval()(x)
    model.train(was_training)
    logits: Tensor = getattr(output, "logits", output)
    return (logits.argmax(-1) == y).float().mean().item()
