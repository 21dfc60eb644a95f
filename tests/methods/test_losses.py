"""Each loss against a few lines of NumPy in float64: values, and gradients by finite differences."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tstar import methods
from tstar.methods.ctkd import reversal
from tstar.methods.distilling import divergence
from tstar.methods.logit_standardization import standardize

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


def z_score(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(1, keepdims=True)) / (1e-7 + z.std(1, ddof=1, keepdims=True))


def facts(**changes: object) -> methods.Facts:
    given = {"num_features": M, "num_classes": K, "teacher": Net(seed=3), "csg": 2.0}
    given |= {"validation": (random(9, 4, seed=5), torch.arange(9) % K), "epochs": 20}
    return methods.Facts(**(given | changes))


def loss_of(name: str, **options: object) -> tuple[float, np.ndarray, np.ndarray]:
    """The method's loss on (X, Y), with the plain logits of student and teacher."""
    recipe = methods.get(name, **options).prepare(Net(), facts())
    value = recipe.loss(recipe.model(X), Y, X)
    return value.item(), Net()(X).detach().numpy(), Net(seed=3)(X).detach().numpy()


def test_default():
    value, z, _ = loss_of("default")
    assert value == pytest.approx(ce(z, Y), rel=1e-12)


def test_sqrt_m():
    value, z, _ = loss_of("sqrt-m")
    assert value == pytest.approx(ce(z / math.sqrt(M), Y), rel=1e-12)


def test_fixed_and_a_candidate_of_temperature_check():
    value, z, _ = loss_of("fixed", temperature=3.0)
    assert value == pytest.approx(ce(z / 3, Y), rel=1e-12)
    recipe = methods.get("temperature-check").at(1 / 0.3).prepare(Net(), facts())
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(0.3 * z, Y), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 0.35])
def test_label_smoothing(epsilon):
    value, z, _ = loss_of("label-smoothing", epsilon=epsilon)
    assert value == pytest.approx(ce(z, Y, epsilon), rel=1e-12)
    torchs = nn.CrossEntropyLoss(label_smoothing=epsilon)(torch.from_numpy(z), Y)
    assert value == pytest.approx(torchs.item(), rel=1e-12)


def test_label_smoothing_has_the_papers_default():
    value, z, _ = loss_of("label-smoothing")
    assert value == pytest.approx(ce(z, Y, 0.1), rel=1e-12)


def test_insert_ln():
    value, z, _ = loss_of("insert-ln")
    normal = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
    assert value == pytest.approx(ce(normal, Y), rel=1e-12)


def test_relaxed_softmax():
    recipe = methods.get("relaxed-softmax").prepare(Net(), facts())
    head = recipe.model.head
    with torch.no_grad():
        head.alpha.weight.copy_(random(1, M, seed=8))
        head.alpha.bias.fill_(-0.7)
    value = recipe.loss(recipe.model(X), Y, X).item()
    h = Net().features(X).detach().numpy()
    alpha = np.log1p(np.exp(h @ random(1, M, seed=8).numpy().T - 0.7)) + 1e-6
    assert value == pytest.approx(ce(alpha * Net()(X).detach().numpy(), Y), rel=1e-12)


def test_kd():
    value, z, t = loss_of("kd")
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * 16 * kl(t / 4, z / 4), rel=1e-12)


def test_logit_standardization():
    value, z, t = loss_of("logit-standardization")
    soft = kl(z_score(t) / 2, z_score(z) / 2)
    assert value == pytest.approx(0.1 * ce(z, Y) + 9 * 4 * soft, rel=1e-12)


def test_standardized_logits_have_mean_zero_and_deviation_one():
    z = 3 * random(4, K, seed=6) + 2
    assert np.allclose(standardize(z).numpy(), z_score(z.numpy()), rtol=1e-12, atol=1e-12)


def test_ctkd():
    value, z, t = loss_of("ctkd")
    tau = 1 + 20 / (1 + math.exp(-1))
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * tau**2 * kl(t / tau, z / tau), rel=1e-6)


def test_meta_kd():
    value, z, t = loss_of("meta-kd", tau=3.0)
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * 9 * kl(t / 3, z / 3), rel=1e-12)
    start, *_ = loss_of("meta-kd")
    assert start == pytest.approx(0.1 * ce(z, Y) + 0.9 * 16 * kl(t / 4, z / 4), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "s"),
    [
        ("adacos-fixed", math.sqrt(2) * math.log(4)),
        ("normface-bound", 0.8 * math.log(4 * 0.99 / 0.01)),
    ],
)
def test_cosine_heads(name, s):
    value, *_ = loss_of(name)
    h, w = Net().features(X).detach().numpy(), Net().head.weight.detach().numpy()
    cosines = h @ w.T / np.outer(np.linalg.norm(h, axis=1), np.linalg.norm(w, axis=1))
    assert value == pytest.approx(ce(s * cosines, Y), rel=1e-6)


@pytest.mark.parametrize(("epoch", "factor"), [(1, 1), (15, 1), (16, 4), (20, 4)])
def test_heated_up(epoch, factor):
    recipe = methods.get("heated-up").prepare(Net(), facts())
    lr_factor = recipe.on_epoch(epoch, 20)
    value = recipe.loss(recipe.model(X), Y, X).item()
    h, w = Net().features(X).detach().numpy(), Net().head.weight.detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    assert value == pytest.approx(ce(16 / math.sqrt(M) / factor * h @ w.T, Y), rel=1e-6)
    assert lr_factor == {1: 1.0, 4: 0.1}[factor]


def test_learned_temperature():
    recipe = methods.get("learned-temperature").prepare(Net(), facts())
    z = Net()(X).detach().numpy()
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(z, Y), rel=1e-12)
    with torch.no_grad():
        recipe.model.head.log_scale.fill_(math.log(2.5))
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(2.5 * z, Y), rel=1e-12)
    assert recipe.report()["temperature"] == pytest.approx(1 / 2.5)


@pytest.mark.parametrize(
    ("name", "T"),
    [
        ("ours-base", 1.0),  # 0.7239·sqrt(7) − 4.706 < 1: clipped
        ("ours-csg", 0.4111 * math.sqrt(M) + 6.848 - 2.024 * math.log(2)),
        ("ours-cn", 0.4051 * math.sqrt(M) + 6.656 - 1.973 * math.log(K)),
        ("ours-csgcn", 0.3192 * math.sqrt(M) + 20.74 + 3.746 * math.log(2) - 7.38 * math.log(K)),
    ],
)
def test_ours(name, T):
    value, *_ = loss_of(name)
    net = Net()
    h = net.features(X).detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    z = h @ net.head.weight.detach().numpy().T + net.head.bias.detach().numpy()
    assert value == pytest.approx(ce(z / T, Y), rel=1e-12)


ALL = [name for name in methods.list() if name != "temperature-check"]


@pytest.mark.parametrize("name", ALL)
def test_every_method_combines_with_label_smoothing(name):
    """The smoothed loss minus the plain one is ε·(mean over k of −log p_k − (−log p_y)), on the hard part."""
    epsilon, scale = 0.2, 0.1 if methods.get(name).needs & {"teacher"} else 1.0
    plain = methods.get(name).prepare(Net(), facts())
    smooth = methods.get(name).prepare(Net(), facts(label_smoothing=epsilon))
    logits = plain.model(X)
    z = logits.detach().numpy()
    difference = smooth.loss(smooth.model(X), Y, X) - plain.loss(logits, Y, X)
    expected = scale * (ce(z, Y, epsilon) - ce(z, Y))
    if name == "label-smoothing":  # it brings its own ε
        expected = 0.0
    assert difference.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("heated-up",)])
def test_gradients_of_the_loss_are_those_of_finite_differences(name):
    recipe = methods.get(name).prepare(Net(), facts())
    z = recipe.model(X).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: recipe.loss(z, Y, X), (z,))


@pytest.mark.parametrize(
    "name", ["insert-ln", "relaxed-softmax", "adacos-fixed", "learned-temperature"]
)
def test_gradients_through_the_changed_heads(name):
    head = methods.get(name).prepare(Net(), facts()).model.head.double()
    h = random(3, M, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(head, (h,))


def test_standardize_and_divergence_pass_gradcheck():
    z, t = random(3, K, seed=1).requires_grad_(), random(3, K, seed=2)
    assert torch.autograd.gradcheck(standardize, (z,))
    taus = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, u: divergence(z, t, u[0], u[1]), (z, taus))


@pytest.mark.parametrize(
    ("epoch", "value"),
    [(1, 0.5 * (1 + math.cos(0.1 * math.pi)) - 1), (5, -0.5), (10, -1), (20, -1)],
)
def test_ctkds_curriculum(epoch, value):
    assert reversal(epoch) == pytest.approx(value, abs=1e-12)
