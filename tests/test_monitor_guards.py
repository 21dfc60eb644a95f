"""The first steps of a tempered training are watched: one warning each, with the way out."""

import copy
import pickle
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

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


@pytest.mark.parametrize("epochs", [1, 3])  # the first ends after 10 batches
@pytest.mark.parametrize("classes", [1, 2])  # in each batch
def test_batches_ordered_by_class_are_reported_once(classes, epochs):
    y = torch.arange(10).repeat_interleave(24)
    x = F.one_hot(y, 10) + torch.randn(240, 10, generator=torch.Generator().manual_seed(0))
    blocks = torch.arange(240).reshape(5, 2, 24)  # (pair, class, sample)
    order = blocks.transpose(1, 2).flatten() if classes == 2 else torch.arange(240)
    model = tstar.temper(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 10)), 2.0)
    with pytest.warns(TstarWarning, match="shuffle=True") as seen:
        train(model, x, y, order=order, epochs=epochs, batch=24).eval()
    assert len(seen) == 1


@pytest.mark.parametrize("lr", [0.01, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_batches_are_not_whatever_the_rate(lr, seed):
    x, y = blobs()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    train(tstar.temper(net(seed), 2.0), x, y, order=order, epochs=4, lr=lr).eval()


def test_a_rare_class_is_not_taken_for_an_order():
    x, y = blobs(2, 200)
    keep = torch.cat([torch.arange(200), torch.arange(200, 208)])  # 96 % of one class
    order = keep[torch.randperm(len(keep), generator=torch.Generator().manual_seed(0))]
    train(tstar.temper(net(), 2.0), x, y, order=order, epochs=2)


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
    again[2].guard._told.clear()
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
    for _ in range(30):  # more than are looked at before the batches are compared
        model(torch.empty(shape, device="meta")).sum().backward()
    assert model.eval()[2].guard.calls == 30


class Sideways(nn.Module):
    """Uses the layer's weight and never calls the layer, except on request."""

    def __init__(self):
        super().__init__()
        self.body, self.fc, self.calls = nn.Linear(6, 8), nn.Linear(8, 4), False

    def forward(self, x):
        h = self.body(x).relu()
        return self.fc(h) if self.calls else F.linear(h, self.fc.weight, self.fc.bias)


def test_a_head_that_is_never_called_is_reported():
    model = tstar.temper(Sideways(), 2.0, head="fc").train()
    with pytest.warns(TstarWarning, match=r"not call the tempered head.*F\.linear.*untemper"):
        step(model, sgd(model, 0.1), times=3)
    model.eval()  # which does not say it again
    called = Sideways()
    called.calls = True
    model = tstar.temper(called, 2.0, head="fc").train()
    step(model, sgd(model, 0.1), times=3)


def test_a_guarded_model_can_be_copied_pickled_and_compiled_to_the_same_numbers():
    model = tstar.temper(net(), 2.0).train()
    x = torch.randn(8, 6)
    model(x)
    twins = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for twin in twins:
        torch.testing.assert_close(twin(x), model(x))
    torch.testing.assert_close(torch.compile(model, backend="eager")(x), model(x))


def test_the_guard_changes_no_number_of_a_training():
    x, y = blobs()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    bare = tstar.temper(net(), 2.0)
    bare[2].guard = None
    watched = train(tstar.temper(net(), 2.0), x, y, order=order)
    for name, value in train(bare, x, y, order=order).state_dict().items():
        assert torch.equal(value, watched.state_dict()[name]), name


# --- the rate of the advice ----------------------------------------------------------------------


def advice(**others):
    told = tstar.recommend(net(), optimizer="sgd", lr=0.1, weight_decay=0.0, steps=500)
    known = {"action": "bn_rate", "temperature": 2.0, "norm": "batch", "lr": 0.3}
    return replace(told, **{**known, "weight_decay": 0.0, "head_lr": None, **others})


def step(model, optimizer, times=1):
    for _ in range(times):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 6)), torch.arange(8) % 4).backward()
        optimizer.step()


def sgd(model, lr):
    return torch.optim.SGD(model.parameters(), lr=lr)


def warm_up(model, lr):
    optimizer = sgd(model, lr)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / 10)
    return optimizer


def one_cycle(model, lr):
    optimizer = sgd(model, lr / 100)
    torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=20)
    return optimizer


@pytest.mark.parametrize("build", [sgd, warm_up, one_cycle])
def test_a_rate_that_was_forgotten_is_noticed_at_the_first_step(build):
    model = tstar.temper(net(), advice())
    with pytest.warns(TstarWarning, match=r"lr=0\.3 .*has lr=0\.1: call advice\.apply") as seen:
        step(model, build(model, 0.1), times=3)
    assert len(seen) == 1


@pytest.mark.parametrize("build", [sgd, warm_up, one_cycle])
def test_the_advised_rate_says_nothing(build):
    model = tstar.temper(net(), advice(head_lr=0.3 if build is sgd else None))
    step(model, build(model, 0.3), times=3)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (None, {"action": "leave", "lr": 0.3}),
        ("lr=0.3", {"action": "rate", "lr": 0.3}),
        ("weight_decay=0.5", {"action": "decay", "weight_decay": 0.5}),
        ("lr=3", {"action": "head_lr", "head_lr": 3.0}),
        ("lr=0.3, weight_decay=0.5", {"action": "bn_rate_decay", "lr": 0.3, "weight_decay": 0.5}),
    ],
)
@pytest.mark.parametrize("route", [tstar.temper, lambda m, a: a.apply(m), "optimizer first"])
def test_whatever_the_advice_changes_is_awaited_on_every_route(words, known, route):
    """Also if the model itself stays as it is; one warning, and none if it was applied."""
    told = tstar.recommend(net(), optimizer="sgd", lr=0.1, weight_decay=0.1, steps=500)
    tempered = dict(temperature=2.0, norm="batch") if "bn" in known["action"] else dict(temperature=1.0, norm=None)  # fmt: skip
    advice = replace(told, **{"lr": 0.1, "weight_decay": 0.1, "head_lr": None, **tempered, **known})
    for applied in (True, False):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
        if applied:
            advice.apply(model, optimizer)
        elif route == "optimizer first":
            tstar.temper(model, advice, optimizer=optimizer)
        else:
            model = route(model, advice)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
        warned = nullcontext() if applied or not words else pytest.warns(TstarWarning, match=words)
        with warned as seen:
            step(model, optimizer, times=3)
        assert seen is None or len(seen) == 1


def test_a_copy_in_another_process_is_held_to_the_rate():
    model = pickle.loads(pickle.dumps(tstar.temper(net(), advice())))
    with pytest.warns(TstarWarning, match=r"lr=0\.3 .*has lr=0\.1"):
        step(model, sgd(model, 0.1))


def test_an_optimizer_that_was_built_before_is_held_to_the_rate_as_well():
    model = net()
    optimizer = sgd(model, 0.1)
    tstar.temper(model, advice(), optimizer=optimizer)
    optimizer.param_groups[0]["lr"] = 0.3  # set after tempering, before the first step
    step(model, optimizer, times=2)
    model = net()
    optimizer = sgd(model, 0.1)
    tstar.temper(model, advice(), optimizer=optimizer)
    with pytest.warns(TstarWarning, match="lr=0.3"):
        step(model, optimizer)


def test_an_advice_for_another_width_is_reported():
    told = advice()
    with pytest.warns(TstarWarning, match=r"is for M = 32, K = 4, but it is applied to '2'"):
        tstar.temper(net(), replace(told, facts=replace(told.facts, num_features=32)))
    tstar.temper(net(), told)
