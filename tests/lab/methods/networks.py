"""One small network in float64, and losses in NumPy, independent of the package."""

import numpy as np
import torch
from torch import nn

from tstar.lab import methods
from tstar.training import Training

K, M, B = 5, 7, 6


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Net(nn.Module):
    """Features and an output layer, with weights that are no special case."""

    def __init__(self, classes: int = K, seed: int = 0) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, M), nn.BatchNorm1d(M), nn.Tanh())
        self.head = nn.Linear(M, classes)
        self.double()
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(random(*p.shape, seed=10 * seed + i))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


X, Y = random(B, 4, seed=99), torch.tensor([0, 1, 2, 3, 4, 1])
TEACHER = Net(seed=3).eval()
H, W = Net().body(X).detach().numpy(), Net().head.weight.detach().numpy()
Z, Z_T = (net(X).detach().numpy() for net in (Net(), TEACHER))  # plain logits


def log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def ce(z: np.ndarray, epsilon: float = 0.0) -> float:
    soft = np.full(z.shape, epsilon / z.shape[1])
    soft[np.arange(B), Y] += 1 - epsilon
    return float(-(soft * log_softmax(z)).sum(1).mean())


def kl(z_t: np.ndarray, z_s: np.ndarray) -> float:
    p = np.exp(log_softmax(z_t))
    return float((p * (log_softmax(z_t) - log_softmax(z_s))).sum(1).mean())


def normalized(z: np.ndarray, axis: int) -> np.ndarray:
    """As BatchNorm (axis 0) and LayerNorm (axis 1) do."""
    return (z - z.mean(axis, keepdims=True)) / np.sqrt(z.var(axis, keepdims=True) + 1e-5)


def facts(label_smoothing: float = 0.0, **changes: object) -> methods.Setting:
    """The setting of a run of :class:`Net`."""
    given = {"num_features": M, "num_classes": K, "teacher": TEACHER, "csg": 2.0}
    given |= {"validation": (random(9, 4, seed=5), torch.arange(9) % K)}
    given["training"] = Training(epochs=20, label_smoothing=label_smoothing)
    return methods.Setting(**(given | changes))


def prepared(name: str, **options: object) -> methods.Recipe:
    return methods.get(name, **options).prepare(Net(), facts())


def loss(recipe: methods.Recipe) -> torch.Tensor:
    return recipe.loss(recipe.model(X), Y, X)


ALL = [name for name in methods.list() if name != "temperature-check"]
