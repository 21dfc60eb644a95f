"""A network, data and a loss of one's own, for study.toml."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Noisy handwritten digits as x_train, y_train, x_test, y_test: images N×H×W, 0…255."""
    from sklearn.datasets import load_digits

    random = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    noisy = images * 16 + random.normal(0, 60, images.shape)
    x = noisy.clip(0, 255).astype(np.uint8).reshape(-1, 8, 8)
    return x[:600], labels[:600], x[600:], labels[600:]


class Net(nn.Module):
    """Two convolutions and a linear output layer on ``num_features`` averaged maps."""

    def __init__(self, num_classes: int, in_channels: int, num_features: int = 32) -> None:
        super().__init__()
        self.maps = nn.Sequential(
            nn.Conv2d(in_channels, num_features // 2, 3, padding=1, bias=False),
            nn.BatchNorm2d(num_features // 2),
            nn.ReLU(),
            nn.Conv2d(num_features // 2, num_features, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(num_features, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.maps(images).mean((2, 3)))


def focal(logits: Tensor, targets: Tensor) -> Tensor:
    """Focal loss, γ = 2: samples that are classified well already count less."""
    log_p = F.log_softmax(logits, 1).gather(1, targets[:, None])[:, 0]
    return -((1 - log_p.exp()) ** 2 * log_p).mean()


def top3(logits: Tensor, targets: Tensor) -> Tensor:
    """The share of samples whose class is among the three most likely."""
    return (logits.topk(3).indices == targets[:, None]).any(1).to(torch.float32).mean()
