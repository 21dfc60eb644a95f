"""Temperature scaling of a trained model: never another class, never a worse NLL."""

import pytest
import torch
from torch import nn

import tstar
from tests.methods.networks import dropout_net, sample
from tstar import TstarError, methods
from tstar.methods.calibration import (
    calibration_error,
    nll,
)


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
    assert nll(new, y) == pytest.approx(result.nll_after, rel=1e-5)
    assert nll(new, y) <= nll(old, y)
    assert result.nll_before == pytest.approx(nll(old, y), rel=1e-9)


def test_forgetting_eval_mode_does_not_matter():
    """Dropout on or off: the same temperature, since eval mode is enforced."""
    x, y = sample(3)
    found = [
        methods.calibrate(dropout_net().train(mode), x.float(), y)[1].temperature
        for mode in (True, False)
    ]
    assert found[0] == found[1]


def test_the_method_scales_after_training_and_records_both_sides():
    recipe = methods.get("temperature-scaling").prepare(dropout_net(), methods.Facts(16, 4))
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
