"""Calibration: measures against NumPy, and the temperature found after training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import tstar
from tests.lab.methods.networks import dropout_net, sample
from tstar import TstarError, TstarWarning
from tstar.lab import methods
from tstar.lab.measuring import calibration_error
from tstar.lab.methods.calibration import fit_temperature, nll


def test_it_finds_the_temperature_that_the_targets_were_drawn_at():
    for scale in (0.2, 1.0, 8.0):
        logits, targets = sample(0, scale, n=4000)
        assert fit_temperature(logits, targets)[0] == pytest.approx(scale, rel=0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 50))
def test_it_is_a_minimum_of_the_nll_and_scales_with_the_logits(seed, scale):
    logits, targets = sample(seed, n=60)
    T, at_bound = fit_temperature(logits * scale, targets)
    best = nll(logits * scale, targets, T)
    assert best <= nll(logits * scale, targets)
    if not at_bound:
        for nearby in (0.99, 1.01):
            assert nll(logits * scale, targets, T * nearby) >= best - 1e-9


def test_nll_against_numpy():
    logits, targets = sample(1, n=30)
    z = logits.numpy() / 3
    log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
    assert nll(logits, targets, 3.0) == pytest.approx(
        -log_p[np.arange(30), targets].mean(), rel=1e-12
    )


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
    with torch.no_grad():
        model.weight.copy_(torch.eye(3))
    with pytest.warns(TstarWarning, match="bound"):
        methods.calibrate(nn.Sequential(model), logits, targets)


def test_the_calibration_error_is_that_of_a_histogram():
    """Σ |hits_b − confidence_b|/n, with bins by NumPy: fifteen of them unless asked otherwise."""
    generator = torch.Generator().manual_seed(1)
    p = (3 * torch.randn(400, 5, generator=generator, dtype=torch.float64)).softmax(1)
    targets = torch.randint(5, (400,), generator=generator)
    sure, hit = p.max(1).values.numpy(), (p.argmax(1) == targets).numpy()
    for bins, asked in ((10, {"bins": 10}), (15, {})):
        gaps, _ = np.histogram(sure, bins=bins, range=(0, 1), weights=hit - sure)
        want = np.abs(gaps).sum() / 400
        assert calibration_error(p, targets, **asked) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("logits", [torch.zeros(0, 2), torch.full((2, 2), torch.nan)])
def test_bad_input_is_refused(logits):
    with pytest.raises(TstarError, match="finite and at least one"):
        fit_temperature(logits, torch.zeros(len(logits), dtype=torch.long))


@pytest.mark.parametrize("already", [False, True])
def test_calibrating_a_model_keeps_its_classes_and_lowers_its_nll(already):
    model = tstar.temper(dropout_net(), 3.0) if already else dropout_net()
    model = nn.Sequential(*model).train()
    model[1].eval()  # a frozen BatchNorm: every module's own mode comes back
    x, y = sample(3)
    x = x.float()
    modes = [m.training for m in model.modules()]
    before = {k: v.clone() for k, v in model.state_dict().items()}
    scaled, result = methods.calibrate(model, x, y)
    assert [m.training for m in model.modules()] == modes
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    old, new = model.eval()(x), scaled.eval()(x)
    assert torch.equal(old.argmax(1), new.argmax(1))
    assert torch.allclose(new, old / result.temperature, rtol=1e-5, atol=1e-7)
    assert nll(new, y) == pytest.approx(result.val_nll_after, rel=1e-5)
    assert nll(new, y) <= nll(old, y)
    assert result.val_nll_before == pytest.approx(nll(old, y), rel=1e-9)


def test_the_method_scales_after_training_and_records_both_sides():
    recipe = methods.get("temperature-scaling").prepare(dropout_net(), methods.Setting(16, 4))
    x, y = sample(3)
    x = x.float()
    assert torch.equal(recipe.model.eval()(x), dropout_net().eval()(x))
    old = recipe.model(x)
    numbers = recipe.finish(recipe.model, x, y)
    new = recipe.model(x)
    assert torch.allclose(new, old / numbers["temperature"], rtol=1e-5)
    assert numbers["val_nll_after"] <= numbers["val_nll_before"]
    assert numbers["val_ece_before"] == pytest.approx(
        calibration_error(old.softmax(1), y), abs=1e-6
    )
    assert numbers["val_ece_after"] == pytest.approx(calibration_error(new.softmax(1), y), abs=1e-6)
    with pytest.raises(TstarError, match="validation data"):
        recipe.finish(recipe.model, x[:0], y[:0])


class Captioned(nn.Module):
    """Takes dictionaries and returns one, as transformers' models do; fails at other sizes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.ReLU())
        self.fc = nn.Linear(4 * 18 * 18, 3)

    def forward(self, pixel_values, scale):
        return {"logits": self.fc(self.body(pixel_values)) * scale.mean()}


def test_loaders_dictionaries_and_arrays_give_the_same_temperature():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 1, 20, 20, generator=generator)
    scale = torch.full((300,), 20.0)
    torch.manual_seed(0)
    model = Captioned()
    with torch.no_grad():
        drawn_at = model(x, scale)["logits"] / 5
    y = drawn_at.softmax(1).multinomial(1, generator=generator)[:, 0]
    rows = [
        {"pixel_values": a, "scale": b, "labels": int(c)}
        for a, b, c in zip(x, scale, y, strict=True)
    ]
    loader = torch.utils.data.DataLoader(rows, batch_size=64)
    scaled, one = methods.calibrate(model, loader)
    _, two = methods.calibrate(model, {"pixel_values": x, "scale": scale}, y)
    plain = nn.Sequential(model.body, model.fc, nn.Linear(3, 3, bias=False))
    with torch.no_grad():
        plain[2].weight.copy_(20 * torch.eye(3))
    pairs = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=100)
    _, three = methods.calibrate(plain, pairs)
    assert one.temperature == pytest.approx(5, rel=0.3)
    for other in (two, three):
        assert other.temperature == pytest.approx(one.temperature, rel=1e-3)
    with torch.no_grad():
        both = [net.eval()(x, scale)["logits"] for net in (tstar.fold(scaled.eval()), model)]
    torch.testing.assert_close(both[0], both[1] / one.temperature, rtol=1e-3, atol=1e-4)


def test_errors_of_calibrate_name_what_it_has():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, x):
            return self.a(x) + self.b(x)

    x, y = torch.randn(40, 6), torch.arange(40) % 3
    with pytest.raises(TstarError, match="pass head='a'"):
        methods.calibrate(Two(), x, y)
    with pytest.raises(TstarError, match=r"failed while the model ran on your data: RuntimeError"):
        methods.calibrate(nn.Linear(7, 3), x, y)
    with pytest.raises(TstarError, match="at least one batch"):
        methods.calibrate(nn.Linear(6, 3), [])
