"""The output layer, found by a run that leaves no trace."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.surgery.networks import Wordy, small_convnet
from tstar import TstarError
from tstar.surgery.probing import (
    call,
    in_mode,
    inputs_of,
    probe,
    run_once,
    tensors_in,
    undisturbed,
    walk,
)


def test_what_a_model_takes_of_a_batch():
    assert inputs_of([1, 2]) == inputs_of([1]) == 1
    assert inputs_of((1, 2, 3)) == (1, 2, 3)
    assert inputs_of({"a": 1}) == {"a": 1}
    assert inputs_of([]) == []
    nested = inputs_of([[1, 2], 3])
    assert call(lambda pair: pair, nested) == [1, 2]
    assert inputs_of(nested) == nested
    with pytest.raises(
        TstarError, match=r"must be \[inputs, labels\], got 3 parts.*a tuple such as"
    ):
        inputs_of([1, 2, 3])


def test_a_batch_of_a_loader_is_an_example_everywhere():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(32, 6, generator=generator), torch.arange(32) % 3
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    how = {"optimizer": ("sgd", 0.1), "steps": 300, "batch_size": 32}
    for ask in (
        lambda batch: tstar.find_head(net, batch),
        lambda batch: tstar.recommend(net, example_input=batch, **how).to_dict(),
        lambda batch: tstar.temper(net, 3.0, backbone="matched", example_input=batch)[3].backbone,
        lambda batch: tstar.speeds(net, batch, ("sgd", 0.1)),
    ):
        assert ask([x, y]) == ask(x)
        with pytest.raises(TstarError, match=r"\[inputs, labels\], got 3 parts"):
            ask([x, y, y])
    for ask in (tstar.recommend, lambda *given, **options: tstar.temper(*given, 3.0, **options)):
        with pytest.raises(TstarError, match=r"\[inputs, labels\], got 3 parts"):
            ask(net, head="3", example_input=[x, y, y])


def test_examples_may_be_tuples_and_dicts():
    model = Wordy()
    ids = torch.zeros(2, 5, dtype=torch.long)
    assert (
        tstar.find_head(model, (ids,))
        == tstar.find_head(model, {"ids": ids})
        == tstar.find_head(model, ids)
    )


def test_a_layer_off_the_path_to_the_logits_is_not_chosen():
    """The last layer that runs, and the last one registered, are both decoys."""

    class Decoy(nn.Module):
        def __init__(self):
            super().__init__()
            self.true_head, self.projector = nn.Linear(6, 4), nn.Linear(6, 9)

        def forward(self, x):
            logits = self.true_head(x)
            self.embedding = self.projector(x)
            return logits

    assert tstar.find_head(Decoy(), torch.randn(2, 6)).path == "true_head"
    assert tstar.find_head(Decoy()).path == "true_head"


def test_probing_leaves_no_trace():
    model = small_convnet().train()
    model[1].eval()  # a mode that a plain model.train() afterwards would lose
    before = copy.deepcopy(model.state_dict())
    modes = [m.training for m in model.modules()]
    hooks = [len(m._forward_hooks) for m in model.modules()]
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    for example in (None, torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))):
        tstar.find_head(model, example)
    tstar.temper(model, 3.0, head="all")
    assert modes == [m.training for m in model.modules()]
    assert hooks == [len(m._forward_hooks) for m in model.modules()]
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == np.random.get_state()[1]).all()  # noqa: NPY002


def test_logits_with_a_second_source_are_refused():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.table = nn.Linear(6, 4), nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return self.fc(x) + x @ self.table

    with pytest.raises(TstarError, match="besides 'fc' they depend on"):
        tstar.find_head(Residual(), torch.randn(2, 6))


def test_a_bad_example_input():
    with pytest.raises(TstarError, match="must run on example_input, but it raised RuntimeError"):
        tstar.find_head(small_convnet(), torch.randn(2, 7, 16, 16))
    with pytest.raises(TstarError, match="must be on the model's device"):
        tstar.find_head(small_convnet(), torch.randn(2, 3, 16, 16, device="meta"))
    with pytest.raises(TstarError, match="must be on the model's device"):
        tstar.find_head(small_convnet().to("meta"), torch.randn(2, 3, 16, 16))


class Returns(nn.Module):
    """A linear layer whose output is returned in some way."""

    def __init__(self, wrap):
        super().__init__()
        self.fc, self.wrap = nn.Linear(6, 4), wrap

    def forward(self, x):
        return self.wrap(self.fc(x))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda z: {"scores": z},  # one tensor needs no name
        lambda z: {"loss": z.sum(), "scores": z},  # a loss has no axis
        lambda z: {"logits": z, "hidden": z.detach()},
        lambda z: (z.sum(), [z]),
    ],
)
def test_logits_are_found_in_what_a_model_returns(wrap):
    assert tstar.find_head(Returns(wrap), torch.randn(2, 6)).path == "fc"


def test_values_without_a_name_are_refused():
    with pytest.raises(TstarError, match=r"must call one of them 'logits', got \['a', 'b'\]"):
        tstar.find_head(Returns(lambda z: {"a": z, "b": 2 * z}), torch.randn(2, 6))
    with pytest.raises(TstarError, match="must return logits, got str"):
        tstar.find_head(Returns(lambda z: "nothing"), torch.randn(2, 6))


def test_modules_that_keep_something_in_eval_mode_are_told_that_it_is_over():
    """LeViT's attention caches its biases in eval mode and drops them when it trains."""

    class Caching(nn.Linear):
        cached = False

        def train(self, mode=True):
            self.cached = not mode
            return super().train(mode)

    model = nn.Sequential(Caching(6, 4), nn.Dropout())
    model.train()
    model[1].eval()
    with in_mode(model):
        assert model[0].cached
        assert not model.training
    assert not model[0].cached
    assert [m.training for m in model.modules()] == [True, True, False]
    with in_mode(model, training=True):
        assert all(m.training for m in model.modules())


def test_several_tensors_that_could_be_logits_are_refused():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 4), nn.Linear(6, 3)

        def forward(self, x):
            return self.one(x), self.two(x), x

    with pytest.raises(TstarError, match=r"several tensors .* \(they come from 'one', 'two'\)"):
        probe(Two(), torch.randn(2, 6))
    assert probe(Two(), torch.randn(2, 6), training=True).paths == ("two", "one")


def test_a_walk_visits_each_node_once_and_stops_where_it_is_barred():
    graph = {
        "logits": ("passed", "add", ["left", "right", "gate", None]),
        "left": ("passed", "view", ["head"]),
        "right": ("passed", "view", ["head", "wall"]),
        "gate": ("passed", "softmax", ["scale"]),  # beside the head, not after it
        "scale": ("passed", "accumulategrad", []),
        "head": ("found", "fc", ["below"]),
        "wall": ("blocked", "Mm", []),
        "below": ("blocked", "Never", []),
    }
    visits = []

    def look(node):
        visits.append(node)
        kind, name, parents = graph[node]
        return kind, name, parents if kind == "passed" else []

    seen = walk(["logits"], look, ("odd",))
    assert (seen.paths, seen.blocked, seen.not_affine) == (("fc",), ("Mm",), ("odd",))
    assert seen.passed == ("add", "view")
    assert sorted(visits) == ["gate", "head", "left", "logits", "right", "scale", "wall"]


def test_tensors_are_found_at_any_depth_but_numbers_and_indices_are_none():
    a, b, index = torch.ones(2), torch.zeros(3), torch.arange(3)
    found = tensors_in({"x": [a, (index, b)], "y": 3, "z": "text"})
    assert len(found) == 2
    assert found[0] is a
    assert found[1] is b
    assert tensors_in(index) == tensors_in(None) == []


def test_an_example_is_passed_as_it_is_meant():
    def model(*args, **kwargs):
        return args, kwargs

    assert call(model, {"a": 1}) == ((), {"a": 1})
    assert call(model, (1, 2)) == ((1, 2), {})
    assert call(model, [1, 2]) == (([1, 2],), {})


def test_the_first_example_that_runs_is_the_last_one_tried():
    model = nn.Linear(6, 4).train()
    calls, hooks = [], []

    def hook():
        hooks.append(model.register_forward_pre_hook(lambda m, inputs: calls.append(inputs[0])))
        return hooks[-1:]

    good = torch.randn(2, 6)
    assert run_once(model, ["no tensor", torch.randn(2, 5), good, torch.randn(9, 6)], hook)
    assert calls[-1] is good
    assert len(hooks) == 3
    assert not model._forward_pre_hooks
    assert model.training
    assert not run_once(model, ["no tensor"], hook)
    assert not run_once(model, [], hook)


def test_buffers_and_generators_are_as_before_even_after_an_error():
    model = nn.Sequential(nn.BatchNorm1d(3))
    before = copy.deepcopy(model.state_dict())

    def breaks():
        with undisturbed(model, training=True):
            model(torch.randn(8, 3))
            random.random()
            np.random.rand()  # noqa: NPY002
            assert model[0].num_batches_tracked == 1
            raise KeyError

    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1:3]  # noqa: NPY002
    with pytest.raises(KeyError):
        breaks()
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    key, place = np.random.get_state()[1:3]  # noqa: NPY002
    assert ((key == states[2][0]).all(), place) == (True, states[2][1])
