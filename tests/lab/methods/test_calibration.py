"""Calibration: measures against NumPy, and the temperature found after training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tstar
from tstar import TstarError, TstarWarning
from tstar.lab import methods
from tstar.lab.measuring import calibration_error
from tstar.lab.methods.calibration import fit_temperature, nll


def sample(seed: int, scale: float = 1.0, n: int = 400):
    """Logits whose true temperature is ``scale``: targets are drawn from softmax(z), logits are scale·z."""
    z = 2 * np.random.default_rng(seed).standard_normal((n, 4))
    generator = torch.Generator().manual_seed(seed)
    targets = torch.from_numpy(z).softmax(1).multinomial(1, generator=generator)[:, 0]
    return torch.from_numpy(scale * z), targets


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)
    )


@pytest.mark.parametrize("scale", [0.2, 1.0, 8.0])
def test_it_finds_the_temperature_that_the_targets_were_drawn_at(scale):
    assert fit_temperature(*sample(0, scale, n=4000))[0] == pytest.approx(scale, rel=0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 50))
def test_it_is_a_minimum_of_the_nll(seed, scale):
    logits, targets = sample(seed, scale, n=60)
    T, at_bound = fit_temperature(logits, targets)
    best = nll(logits, targets, T)
    assert best <= nll(logits, targets)
    for nearby in () if at_bound else (0.99, 1.01):
        assert nll(logits, targets, T * nearby) >= best - 1e-9


def test_nll_against_numpy():
    logits, targets = sample(1, n=30)
    z = logits.numpy() / 3
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    wanted = -log_p[np.arange(30), targets].mean()
    assert nll(logits, targets, 3.0) == pytest.approx(wanted, rel=1e-12)


def test_separable_data_stop_at_the_bound_and_say_so():
    targets = torch.arange(30) % 3
    logits = 5 * F.one_hot(targets, 3).double()
    T, at_bound = fit_temperature(logits, targets)
    assert at_bound
    assert T < 0.2
    T, at_bound = fit_temperature(logits, (targets + 1) % 3)  # always wrong: the flatter the better
    assert at_bound
    assert pytest.approx(100, rel=0.01) == T
    model = nn.Linear(3, 3, bias=False, dtype=torch.float64)
    nn.init.eye_(model.weight)
    with pytest.warns(TstarWarning, match="bound"):
        methods.calibrate(nn.Sequential(model), [(logits, targets)])


@pytest.mark.parametrize("logits", [torch.zeros(0, 2), torch.full((2, 2), torch.nan)])
def test_bad_input_is_refused(logits):
    with pytest.raises(TstarError, match="finite and at least one"):
        fit_temperature(logits, torch.zeros(len(logits), dtype=torch.long))


@pytest.mark.parametrize("already", [False, True])
def test_calibrating_a_model_keeps_its_classes_and_lowers_its_nll(already):
    model = tstar.temper(network(), 3.0) if already else network()
    model.train()[1].eval()  # a frozen BatchNorm: every module's own mode comes back
    x, y = sample(3)
    x = x.float()
    modes = [m.training for m in model.modules()]
    before = {k: v.clone() for k, v in model.state_dict().items()}
    scaled, result = methods.calibrate(model, [(x[:300], y[:300]), (x[300:], y[300:])])
    assert [m.training for m in model.modules()] == modes
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    old, new = model.eval()(x), scaled.eval()(x)
    assert torch.equal(old.argmax(1), new.argmax(1))
    assert torch.allclose(new, old / result.temperature, rtol=1e-5, atol=1e-7)
    assert nll(new, y) == pytest.approx(result.val_nll_after, rel=1e-5)
    assert nll(new, y) <= nll(old, y) == pytest.approx(result.val_nll_before, rel=1e-6)


def test_the_method_scales_after_training_and_records_both_sides():
    recipe = methods.get("temperature-scaling").prepare(network(), methods.Setting(16, 4))
    x, y = sample(3)
    x = x.float()
    old = recipe.model.eval()(x)
    assert torch.equal(old, network().eval()(x))
    numbers = recipe.finish(recipe.model, x, y)
    new = recipe.model(x)
    assert torch.allclose(new, old / numbers["temperature"], rtol=1e-5)
    assert numbers["val_nll_after"] <= numbers["val_nll_before"]
    for z, when in ((old, "before"), (new, "after")):
        wanted = calibration_error(z.softmax(1), y)
        assert numbers[f"val_ece_{when}"] == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(TstarError, match="validation data"):
        recipe.finish(recipe.model, x[:0], y[:0])


class Captioned(nn.Module):
    """Takes dictionaries and returns one, as transformers' models do."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4, bias=False, dtype=torch.float64)
        nn.init.eye_(self.fc.weight)

    def forward(self, pixel_values, scale):
        return {"logits": self.fc(pixel_values) * scale.mean()}


def test_dictionaries_are_the_model_s_keywords():
    x, y = sample(2)
    twenty = torch.full((400,), 20.0)
    columns = {"pixel_values": x, "scale": twenty, "labels": y}
    rows = [{name: values[i] for name, values in columns.items()} for i in range(400)]
    scaled, found = methods.calibrate(Captioned(), torch.utils.data.DataLoader(rows, 64))
    assert found.temperature == pytest.approx(20, rel=0.3)
    both = (net(x, twenty)["logits"] for net in (tstar.fold(scaled.eval()), Captioned()))
    torch.testing.assert_close(next(both), next(both) / found.temperature)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.a(x) + self.b(x)


@pytest.mark.parametrize(
    ("model", "batches", "match"),
    [
        (Two(), 1, "pass head='a'"),
        (nn.Linear(7, 3), 1, r"failed while the model ran on your data: RuntimeError"),
        (nn.Linear(6, 3), 0, "at least one batch"),
    ],
)
def test_errors_of_calibrate_name_what_it_has(model, batches, match):
    with pytest.raises(TstarError, match=match):
        methods.calibrate(model, [(torch.randn(40, 6), torch.arange(40) % 3)] * batches)
