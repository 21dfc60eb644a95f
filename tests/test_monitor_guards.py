"""A tempered head watches its training: one warning each, with the way out, and never an error."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks, register_optimizer_step_pre_hook

import tstar
from tstar import TstarWarning
from tstar.monitor import mask_padding


def blobs(classes=4, each=64):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(classes).repeat_interleave(each)
    return 4 * F.one_hot(y, 6).float() + torch.randn(len(y), 6, generator=generator), y


def train(model, x, y, *, order, epochs=2, batch=16, lr=0.05):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    model.train()
    for _ in range(epochs):
        for rows in order.split(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    return model


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))


def test_batches_ordered_by_class_are_reported_once():
    y = torch.arange(10).repeat_interleave(48)
    x = 4 * F.one_hot(y, 10) + torch.randn(480, 10, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(5)  # a gap of 1.4, and not near the limit of 0.5
    model = tstar.temper(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 10)), 2.0)
    train(model, x, y, order=torch.arange(480), epochs=4, batch=24)
    with pytest.warns(TstarWarning, match="shuffle the training data"):
        model.eval()
    model.train().eval()  # said once


@pytest.mark.parametrize("lr", [0.01, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_batches_are_not_whatever_the_rate(lr, seed):
    x, y = blobs()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    train(tstar.temper(net(seed), 2.0), x, y, order=order, epochs=4, lr=lr).eval()


def test_statistics_far_from_the_last_batch_are_reported_at_eval_and_at_fold():
    x, y = blobs()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    model = train(tstar.temper(net(), 2.0), x, y, order=order, epochs=4)
    model[2].norm.running_mean += 50
    model(x)
    model[2].guard.calls = 63  # so that the next batch is looked at
    model(x)
    seen = model[2].norm.num_batches_tracked.fill_(49)  # the initial statistics still count
    model.eval().train()
    seen.fill_(50)
    with pytest.warns(TstarWarning, match=r"far from those of the last batch.*recalibrate"):
        model.eval()
    again = copy.deepcopy(model)
    again[2].guard._given.clear()
    with pytest.warns(TstarWarning, match="far from those of the last batch"):
        tstar.fold(again)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 4)

    def forward(self, ids, attention_mask=None):
        return self.out(self.words(ids))


def test_padding_in_token_classification_is_reported_unless_it_is_masked():
    ids = torch.randint(20, (4, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(4, 7)
    model = tstar.temper(Tagger(), 2.0, example_input=ids).train()

    def tag(model, times=1, **known):
        labels = (ids % 4).masked_fill(mask == 0, -100)
        for _ in range(times):
            F.cross_entropy(model(ids, **known).flatten(0, 1), labels.flatten()).backward()

    tag(model)  # nothing is padded
    mask[:2, 4:] = 0
    masked = copy.deepcopy(model)
    mask_padding(masked)
    tag(masked, attention_mask=mask)
    with pytest.warns(TstarWarning, match=r"padding counts.*mask_padding\(model\)") as seen:
        tag(model, 3)
    assert len(seen) == 1


@pytest.mark.parametrize("shape", [(8, 6), (8, 5, 6)])  # of features, also one for each token
def test_a_training_step_without_numbers_is_left_alone(shape):
    model = tstar.temper(net().to("meta"), 2.0).train()
    for _ in range(70):
        model(torch.empty(shape, device="meta")).sum().backward()
    model.eval()


class Sideways(nn.Module):
    """Uses the layer's weight and never calls the layer, except on request."""

    def __init__(self):
        super().__init__()
        self.body, self.fc, self.calls = nn.Linear(6, 8), nn.Linear(8, 4), False

    def forward(self, x):
        h = self.body(x).relu()
        return self.fc(h) if self.calls else F.linear(h, self.fc.weight, self.fc.bias)


def sgd(model, lr=0.1):
    return torch.optim.SGD(model.parameters(), lr=lr)


def step(model, optimizer, times=1):
    for _ in range(times):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 6)), torch.arange(8) % 4).backward()
        optimizer.step()


def test_a_head_that_is_never_called_is_reported():
    model = tstar.temper(Sideways(), 2.0, head="fc").train()
    step(model, sgd(model), times=3)
    with pytest.warns(TstarWarning, match=r"never called.*F\.linear.*untemper"):
        model.eval()
    model.train().eval()  # which does not say it again
    called = Sideways()
    called.calls = True
    model = tstar.temper(called, 2.0, head="fc").train()
    step(model, sgd(model), times=3)
    model.eval()


def test_training_in_eval_mode_is_called_that():
    model = tstar.temper(net(), 2.0).eval()
    with pytest.warns(TstarWarning, match=r"trains in eval mode.*model\.train\(\)") as seen:
        step(model, sgd(model), times=30)
    assert len(seen) == 1


def test_an_optimizer_of_the_model_before_tempering_is_reported():
    model = net()
    optimizer = sgd(model)
    tempered = tstar.temper(model, 4.0).train()  # a copy
    step(tempered, optimizer, times=25)
    with pytest.warns(TstarWarning, match="does not train the tempered head"):
        tempered.eval()
    tempered = tstar.temper(model, 4.0).train()
    step(tempered, optimizer, times=511)
    with pytest.warns(TstarWarning, match="does not train the tempered head"):  # without eval mode
        step(tempered, optimizer)


def test_a_norm_that_no_optimizer_holds_is_reported():
    model = net()
    optimizer = sgd(model)
    tstar.temper(model, 4.0, inplace=True).train()
    step(model, optimizer, times=25)
    with pytest.warns(TstarWarning, match="does not train the norm before the output layer"):
        model.eval()


def test_what_is_frozen_or_loaded_or_not_stepped_yet_is_no_concern():
    frozen = tstar.temper(net(), 4.0).train()
    frozen[2].requires_grad_(False)
    step(frozen, torch.optim.SGD(frozen[0].parameters(), lr=0.1), times=70)
    frozen.eval()
    loaded = tstar.temper(net(), 4.0).train()
    loaded.load_state_dict(frozen.state_dict())
    loaded.eval()
    few = tstar.temper(net(), 4.0).train()  # an accumulated step is still to come
    for _ in range(10):
        F.cross_entropy(few(torch.randn(8, 6)), torch.arange(8) % 4).backward()
    few.eval()


def test_a_compiled_training_is_not_called_unused():
    model = tstar.temper(net(), 2.0).train()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    step(compiled, sgd(model), times=3)
    model.eval()


class Foreign(torch.optim.Optimizer):
    """Has no rate and cannot be hashed."""

    __hash__ = None

    def __init__(self, params):
        super().__init__(params, {"lr": None})

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter -= 0.1 * parameter.grad


def test_no_optimizer_is_watched_through_the_whole_process():
    """Not one of another model, nor with a hook of others; threads and many models share nothing."""
    before = dict(_global_optimizer_pre_hooks)
    model, other = tstar.temper(net(), 2.0).train(), net()
    step(model, Foreign(model.parameters()))
    assert dict(_global_optimizer_pre_hooks) == before
    step(other, Foreign(other.parameters()))
    hook = register_optimizer_step_pre_hook(lambda *_: None)
    try:
        step(model, Foreign(model.parameters()), times=25)
    finally:
        hook.remove()
    model.eval()


def test_gradients_of_a_trained_model_in_eval_mode_are_no_training():
    """Saliency maps and adversarial examples."""
    model = tstar.temper(net(), 2.0).eval()
    for _ in range(30):
        model(torch.randn(8, 6, requires_grad=True)).sum().backward()


def test_a_norm_that_learns_in_steps_below_its_rounding_is_not_called_untrained():
    torch.manual_seed(0)
    model = tstar.temper(net().bfloat16(), 2.0).train()
    optimizer = sgd(model, lr=1e-3)  # a scale of 1 has steps of 0.004
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 6).bfloat16()), torch.arange(8) % 4).backward()
        optimizer.step()
    assert bool((model[2].norm.weight == 1).all())
    model.eval()


def test_a_batch_without_samples_is_a_step_as_any_other():
    model = tstar.temper(net(), 2.0).train()
    step(model, sgd(model), times=3)
    before = model[2].norm.running_mean.clone()
    model(torch.empty(0, 6)).sum().backward()
    assert torch.equal(model[2].norm.running_mean, before)
    model.eval()


def test_a_guard_that_fails_goes_silent(monkeypatch):
    model = tstar.temper(net(), 2.0).train()
    monkeypatch.setattr("tstar.monitor._gap", lambda *_: 1 / 0)
    step(model, sgd(model), times=3)
    assert model[2].guard is None


def test_a_guarded_model_can_be_copied_pickled_compiled_and_traced_to_the_same_numbers():
    model = tstar.temper(net(), 2.0).train()
    x = torch.randn(8, 6)
    model(x)
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for twin in twins:
        torch.testing.assert_close(twin(x), model(x))
    torch.testing.assert_close(torch.compile(model, backend="eager")(x), model(x))
    untrained = tstar.temper(net(), 2.0).eval()
    torch.testing.assert_close(torch.jit.trace(untrained, x)(x), untrained(x))


def test_the_guard_changes_no_number_of_a_training():
    x, y = blobs()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    bare = tstar.temper(net(), 2.0)
    bare[2].guard = None
    watched = train(tstar.temper(net(), 2.0), x, y, order=order)
    for name, value in train(bare, x, y, order=order).state_dict().items():
        assert torch.equal(value, watched.state_dict()[name]), name
