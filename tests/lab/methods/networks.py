"""Small networks in float64, and losses in NumPy, independent of the package."""

import numpy as np
import torch
from torch import nn

from tstar.lab import methods
from tstar.training import Training

K, M, B = 5, 7, 6


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Net(nn.Module):
    """Features and an output layer, in float64 and with weights that are no special case."""

    def __init__(self, classes: int = K, seed: int = 0) -> None:
        super().__init__()
        self.body = nn.Linear(4, M, dtype=torch.float64)
        self.head = nn.Linear(M, classes, dtype=torch.float64)
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(random(*p.shape, seed=10 * seed + i))

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.body(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


X, Y = random(B, 4, seed=99), torch.tensor([0, 1, 2, 3, 4, 1])


# NumPy, independent of the package.
def log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def ce(z: np.ndarray, y: np.ndarray, epsilon: float = 0.0) -> float:
    soft = np.full(z.shape, epsilon / z.shape[1])
    soft[np.arange(len(y)), y] += 1 - epsilon
    return float(-(soft * log_softmax(z)).sum(1).mean())


def kl(z_t: np.ndarray, z_s: np.ndarray) -> float:
    p = np.exp(log_softmax(z_t))
    return float((p * (log_softmax(z_t) - log_softmax(z_s))).sum(1).mean())


def facts(label_smoothing: float = 0.0, **changes: object) -> methods.Setting:
    """The facts of a run of :class:`Net`."""
    given = {"num_features": M, "num_classes": K, "teacher": Net(seed=3), "csg": 2.0}
    given |= {"validation": (random(9, 4, seed=5), torch.arange(9) % K)}
    given["training"] = Training(epochs=20, label_smoothing=label_smoothing)
    return methods.Setting(**(given | changes))


def loss_of(name: str, **options: object) -> tuple[float, np.ndarray, np.ndarray]:
    """The method's loss on (X, Y), with the plain logits of student and teacher."""
    recipe = methods.get(name, **options).prepare(Net(), facts())
    value = recipe.loss(recipe.model(X), Y, X)
    return value.item(), Net()(X).detach().numpy(), Net(seed=3)(X).detach().numpy()


ALL = [name for name in methods.list() if name != "temperature-check"]


CLASSES, WIDTH = 6, 8


def net(seed: int = 0, classes: int = CLASSES) -> nn.Module:
    model = nn.Sequential(
        nn.Linear(4, WIDTH), nn.BatchNorm1d(WIDTH), nn.Tanh(), nn.Linear(WIDTH, classes)
    )
    model = model.double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(random(*p.shape, seed=100 * seed + i))
    return model


def usual(epochs: int = 8, **changes: object) -> methods.Setting:
    """The facts of a run of :func:`net`."""
    given = {
        "num_features": WIDTH,
        "num_classes": CLASSES,
        "teacher": net(3),
        "csg": 2.0,
        "training": Training(epochs=epochs),
    }
    given |= {"validation": (random(9, 4, seed=5), torch.arange(9) % CLASSES)}
    return methods.Setting(**(given | changes))


INPUTS, LABELS = random(12, 4, seed=50), torch.arange(12) % CLASSES


def sample(seed: int, scale: float = 1.0, n: int = 400, k: int = 4):
    """Logits whose true temperature is ``scale``: targets are drawn from softmax(z), logits are scale·z."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal((n, k))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    y = np.array([rng.choice(k, p=row) for row in p])
    return torch.from_numpy(scale * z), torch.from_numpy(y)


def dropout_net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)
    )


def cosine_loss(s: float) -> float:
    """The cross-entropy of s·cos(w_k, h) on (X, Y), in NumPy."""
    h, w = Net().features(X).detach().numpy(), Net().head.weight.detach().numpy()
    cosines = h @ w.T / np.outer(np.linalg.norm(h, axis=1), np.linalg.norm(w, axis=1))
    return ce(s * cosines, Y)
