"""Finding the head by what the model does."""

import pytest
import torch
from torch import nn

import tstar
from tests.surgery.networks import Wordy, small_convnet
from tstar import TemperedHead, TstarError
from tstar.surgery.finding import (
    check_head,
    resolve_head,
    resolve_heads,
    tempered_heads,
    unwrap,
    working_heads,
)


class Cosine(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(
            nn.functional.normalize(x), nn.functional.normalize(self.weight)
        )


class MyLinear(nn.Linear):
    def forward(self, x):
        return x @ self.weight.T + self.bias


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 20)
        self.out.weight = self.words.weight

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


@pytest.mark.parametrize(
    ("model", "example", "path", "M", "K"),
    [
        (small_convnet(), torch.randn(2, 3, 16, 16), "6", 8, 5),
        (
            nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.LogSoftmax(1)),
            torch.randn(2, 6),
            "2",
            8,
            4,
        ),
        (nn.Linear(6, 4), torch.randn(2, 6), "", 6, 4),
        (
            nn.Sequential(
                nn.Conv2d(3, 8, 3),
                nn.Conv2d(8, 4, 1),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
            ),
            torch.randn(2, 3, 8, 8),
            "1",
            8,
            4,
        ),
        (Wordy(), torch.zeros(2, 5, dtype=torch.long), "out", 16, 4),
        (nn.Sequential(nn.Linear(6, 8), nn.ReLU(), MyLinear(8, 4)), torch.randn(2, 6), "2", 8, 4),
    ],
)
def test_the_head_is_found_with_and_without_an_example(model, example, path, M, K):
    for given in (example, None):
        head = tstar.find_head(model, given)
        assert (head.path, head.num_features, head.num_classes) == (path, M, K)
        assert head.layer is model.get_submodule(path)


def test_auxiliary_classifiers_are_seen_by_all():
    class Aux(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.fc, self.aux = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

        def forward(self, x):
            h = self.body(x).relu()
            return (self.fc(h), self.aux(h)) if self.training else self.fc(h)

    assert isinstance(tstar.temper(Aux(), 2.0).aux, nn.Linear)
    assert isinstance(tstar.temper(Aux(), 2.0, head="all").aux, TemperedHead)


class Frozen(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 8), nn.Linear(8, 4))
        self[1].requires_grad_(False)


class MultiLabel(nn.Sequential):
    class config:
        problem_type = "multi_label_classification"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ReLU(), "no parameters"),
        (lambda: 3, "must be a torch.nn.Module"),
        (lambda: nn.Sequential(nn.Linear(6, 1)), "single logit"),
        (lambda: MultiLabel(nn.Linear(6, 3)), "multi-label"),
        (Frozen, "requires_grad=False"),
        (Tied, "shares it with 'words'"),
        (lambda: nn.Sequential(nn.Linear(6, 8), Cosine(8, 4)), "cosine"),
        (
            lambda: nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.BatchNorm1d(8)),
            "must end in a linear layer",
        ),
    ],
)
def test_models_that_cannot_be_tempered(make, message):
    with pytest.raises(TstarError, match=message):
        tstar.temper(make(), 2.0)


def test_an_unknown_path_names_the_candidates():
    with pytest.raises(TstarError, match="the last candidates are '6'"):
        tstar.temper(small_convnet(), 2.0, head="classifier")


@pytest.mark.parametrize(
    "name",
    ["DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "_FabricModule"],
)
def test_a_wrapper_is_opened(name):
    wrapper, model = type(name, (nn.Module,), {})(), small_convnet()
    wrapper.module = model
    assert unwrap(wrapper) is model
    assert unwrap(torch.compile(model)) is model


def test_the_heads_of_a_tempered_model_are_the_layers_inside():
    model = tstar.temper(small_convnet(), 2.0)
    head = tstar.find_head(model)
    assert (head.path, head.layer, head.num_features) == ("6.layer", model[6].layer, 8)
    alone = TemperedHead(nn.Linear(6, 4), 2.0)
    assert tstar.find_head(alone).path == "layer"
    assert str(tstar.find_head(alone)) == "'layer': Linear, M = 6, K = 4"
    assert str(tstar.find_head(nn.Linear(6, 4))).startswith("the model itself: Linear")


class Twins(nn.Module):
    """Two heads whose mean is the output."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        return (self.one(x) + self.two(x)) / 2


def test_two_heads_are_named():
    model = Twins()
    with pytest.raises(
        TstarError, match=r"Found 2 output layers \('one', 'two'\); pass head='one'"
    ):
        tstar.find_head(model)
    assert [h.path for h in resolve_heads(model, "all", None)] == ["one", "two"]
    assert [h.path for h in resolve_heads(model, ["two"], None)] == ["two"]
    assert resolve_heads(model, "two", None)[0].layer is model.two
    record = resolve_head(model, "one")
    assert resolve_head(model, record) == record
    assert resolve_head(torch.compile(model), "one").layer is model.one
    with pytest.raises(TstarError, match=r"must be a torch\.nn\.Module, got int"):
        unwrap(3)


def test_heads_that_run_and_heads_that_are_kept_aside():
    """PEFT keeps the original of each layer that it trains."""
    model = nn.Module()
    model.original_module, model.trained = (TemperedHead(nn.Linear(6, 4), 2.0) for _ in range(2))
    assert [*tempered_heads(model)] == ["original_module", "trained"]
    assert [*working_heads(model)] == ["trained"]


def test_a_head_inside_an_adapter_is_refused():
    model = nn.Sequential(nn.Linear(6, 8), nn.Module())
    model[1].base_layer = nn.Linear(8, 4)
    head = resolve_head(model, "1.base_layer")
    with pytest.raises(
        TstarError, match=r"got one with an adapter \('1\.base_layer' is part of it"
    ):
        check_head(model, head)
    check_head(model, resolve_head(model, "0"))


def test_a_model_that_never_runs_says_why():
    class Never(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            if x.sum() > 0:  # cannot be traced
                raise ValueError("never")
            raise ValueError("ever")

    with pytest.raises(TstarError, match="could not be found without an input; pass example_input"):
        tstar.find_head(Never())
    with pytest.raises(TstarError, match="must run on example_input, but it raised ValueError: "):
        tstar.find_head(Never(), torch.ones(2, 6))


def test_a_layer_of_one_s_own_is_compared_with_w_h_plus_b():
    """Also behind an example, and whatever is done to the logits is remembered."""
    model = nn.Sequential(nn.Linear(6, 8), Cosine(8, 4))
    for example in (None, torch.randn(2, 6)):
        with pytest.raises(TstarError, match="'1' computes something else"):
            tstar.find_head(model, example)
    end = nn.Sequential(nn.Linear(6, 4), nn.Sigmoid())
    assert "sigmoid" in tstar.find_head(end).passed
    assert "sigmoid" in tstar.find_head(end, torch.randn(2, 6)).passed


def test_an_example_of_several_parts_must_be_on_the_device():
    model = nn.Linear(6, 4)
    for example in ((torch.ones(2, 6, device="meta"),), {"input": torch.ones(2, 6, device="meta")}):
        with pytest.raises(TstarError, match=r"model's device \(cpu\), got meta"):
            tstar.find_head(model, example)
