"""Fold, untemper and checkpoints give the tempered logits, or refuse: what an attack found."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError, TstarWarning
from tstar.head import TemperedHead
from tstar.lab.checkpoints import fold_state_dict


def trained(model, T=4.0, **options):
    """Tempered, and its norm away from its initial statistics."""
    tempered = tstar.temper(model, T, **options).train()
    with torch.no_grad():
        for _ in range(3):
            tempered(2 + 3 * torch.randn(64, 6))
    return tempered.eval()


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))


class Scaled(nn.Linear):
    """An nn.Linear by its class alone."""

    def forward(self, h):
        return super().forward(F.normalize(h, dim=-1))


class Noted(nn.Linear):
    """Its own forward, and still W·h + b."""

    def forward(self, h):
        self.seen = h.shape
        return h @ self.weight.T + self.bias


def adjust(module, inputs, output):
    return output + torch.arange(5.0)


def normalize(module, inputs):
    return (F.normalize(inputs[0], dim=-1),)


@pytest.mark.parametrize("where", ["layer", "head"])
@pytest.mark.parametrize("kind", ["hook", "pre-hook"])
def test_a_hook_that_changes_the_logits_is_refused_and_taking_it_off_is_the_way_out(where, kind):
    model = net()
    layer = model[2]
    if where == "layer":  # before tempering
        hook = layer.register_forward_hook(adjust) if kind == "hook" else layer.register_forward_pre_hook(normalize)  # fmt: skip
        tempered = trained(model, inplace=True)
    else:  # on what stands in its place
        tempered = trained(model, inplace=True)
        hook = tempered[2].register_forward_hook(adjust) if kind == "hook" else tempered[2].register_forward_pre_hook(normalize)  # fmt: skip
    with pytest.raises(TstarError, match=r"'?2'? must give the tempered logits.*handle\.remove"):
        tstar.fold(tempered)
    if where == "head":
        with pytest.raises(TstarError, match=r"handle\.remove"):
            tstar.untemper(tempered)
    hook.remove()
    x = torch.randn(7, 6)
    torch.testing.assert_close(tstar.fold(tempered)(x), tempered(x))


def test_a_hook_that_only_looks_is_no_concern():
    seen = []
    model = net()
    model[2].register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    tempered = trained(model)
    x = torch.randn(7, 6)
    torch.testing.assert_close(tstar.fold(tempered)(x), tempered(x))
    assert seen


@pytest.mark.parametrize("head", [None, "2", ["2"]])
def test_a_layer_with_a_forward_of_its_own_is_compared_however_it_is_named(head):
    body = [nn.Linear(6, 8), nn.ReLU()]
    with pytest.raises(TstarError, match=r"must compute W·h \+ b, but '2'"):
        tstar.temper(nn.Sequential(*body, Scaled(8, 5)), 4.0, head=head)
    tempered = trained(nn.Sequential(*body, Noted(8, 5)), head=head)
    x = torch.randn(7, 6)
    torch.testing.assert_close(tstar.fold(tempered)(x), tempered(x))


def test_float16_that_cannot_hold_the_folded_weights_is_noticed():
    model = trained(net(), 1e6)
    for part in (model[0], model[2].norm, model[2].layer):
        part.half()  # and T in float32, as in a model that was tempered in float16
    with pytest.raises(
        TstarError, match=r"float16 is too coarse at T = 1e\+06: call model.float\(\)"
    ):
        tstar.fold(model)
    with pytest.raises(TstarError, match="too coarse"):
        fold_state_dict(model.state_dict())
    assert tstar.fold(model.float())
    assert tstar.fold(trained(net(), 4.0).half())


def test_bfloat16_is_folded_within_its_rounding():
    tempered = trained(net()).bfloat16()
    x = torch.randn(64, 6).bfloat16()
    torch.testing.assert_close(tstar.fold(tempered)(x), tempered(x), rtol=0.05, atol=0.05)


# --- what cannot be tempered ---------------------------------------------------------------------


def test_an_expanded_weight_is_refused_before_it_is_divided():
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    model[2].weight = nn.Parameter(torch.ones(1, 8).expand(5, 8))
    for act in (
        lambda: tstar.param_groups(model, 2.0, 0.1, rescale=True),
        lambda: tstar.temper(model, 2.0),
    ):
        with pytest.raises(TstarError, match="memory of its own"):
            act()


@pytest.mark.parametrize("head", [None, "2"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_model_is_refused_however_its_head_is_given(head):
    model = torch.jit.script(net())
    for act in (lambda: tstar.temper(model, 2.0, head=head), lambda: tstar.param_groups(model, 2.0, 0.1, head=head, rescale=True)):  # fmt: skip
        with pytest.raises(TstarError, match="scripted"):
            act()


class Modes(nn.Module):
    """Counts how often it ran."""

    def __init__(self):
        super().__init__()
        self.fc, self.calls = nn.Linear(6, 5), 0

    def forward(self, x):
        self.calls += 1
        if x.sum() > 1e30:  # a look at numbers, so that the meta device is not enough
            raise RuntimeError
        return self.fc(x)


def test_the_model_itself_neither_runs_nor_changes_mode():
    """Another thread may train it meanwhile."""
    model = Modes().train()
    assert tstar.find_head(model).path == "fc"
    tstar.temper(model, 2.0, example_input=torch.randn(4, 6))
    assert model.calls == 0
    assert model.training


def test_a_model_that_cannot_be_copied_says_how_to_go_on():
    model = net()
    model.lock = threading.Lock()
    with pytest.raises(
        TstarError, match=r"cannot be copied.*head='path.of.the.layer' and inplace=True"
    ):
        tstar.find_head(model)
    assert isinstance(tstar.temper(model, 2.0, head="2", inplace=True)[2], TemperedHead)


def test_a_folded_head_warns_of_a_norm_that_has_seen_nothing():
    with pytest.warns(TstarWarning, match="never seen a training batch"):
        tstar.fold(tstar.temper(net(), 2.0).eval())
