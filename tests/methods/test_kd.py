"""Knowledge distillation at a fixed temperature."""

import pytest
import torch

from tests.methods.networks import CLASSES, Y, ce, kl, loss_of, random
from tstar.methods.distilling import divergence


def test_kd():
    value, z, t = loss_of("kd")
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * 16 * kl(t / 4, z / 4), rel=1e-12)


def test_kd_at_infinite_temperature_has_the_gradient_of_logit_matching():
    """τ²·∂KL/∂z_s → (z_s − z_t)/K for centered logits: that of ‖z_s − z_t‖²/(2K)."""
    z_t = random(4, CLASSES, seed=1)
    z_t = z_t - z_t.mean(1, keepdim=True)
    z_s = random(4, CLASSES, seed=2)
    z_s = (z_s - z_s.mean(1, keepdim=True)).requires_grad_()
    (soft,) = torch.autograd.grad(divergence(z_s, z_t, 1e4), z_s)
    match = ((z_s - z_t) ** 2).sum(1).mean() / (2 * CLASSES)
    (hard,) = torch.autograd.grad(match, z_s)
    assert torch.allclose(soft, hard, rtol=1e-3, atol=1e-7)
    (at_two,) = torch.autograd.grad(divergence(z_s, z_t, 2.0), z_s)
    assert not torch.allclose(at_two, hard, rtol=1e-3, atol=1e-7)
