"""Putting the tempered head in and taking it out without a trace; advice, checkpoints, numbers that do not fold."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.surgery.networks import small_convnet
from tstar import TemperedHead, TstarError, TstarWarning


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


class Twins(nn.Module):
    """Two heads whose mean is the output, as in a distilled transformer."""

    def __init__(self):
        super().__init__()
        self.body, self.one, self.two = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        h = self.body(x).relu()
        return (self.one(h) + self.two(h)) / 2


class Advice(SimpleNamespace):
    def __float__(self):
        return 3.0


def test_the_advice_says_which_norm_and_how_loud():
    head = tstar.temper(network(), Advice(norm=None, backbone=0.5))[2]
    assert head.norm is None
    assert head.backbone.item() == 0.5
    assert head.temperature.item() == 3.0
    own = tstar.temper(network(), Advice(norm=None, backbone=0.5), norm="layer", backbone=2.0)[2]
    assert isinstance(own.norm, nn.LayerNorm)
    assert own.backbone.item() == 2.0
    assert isinstance(tstar.temper(network(), 3.0)[2].norm, nn.BatchNorm1d)
    short = tstar.temper(network(), Advice(training=SimpleNamespace(steps=25)))[2]
    assert short.norm.momentum == pytest.approx(0.4)


def test_the_advice_to_leave_the_model_leaves_it_and_folds_to_itself():
    model = network()
    x = torch.randn(3, 6)
    before = copy.deepcopy(model.state_dict())
    assert tstar.temper(model, Advice(leave=True)) is model  # an optimizer of before trains it
    assert [type(module) for module in model] == [nn.Linear, nn.ReLU, nn.Linear]
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert torch.equal(tstar.fold(model.eval())(x), model(x))
    with pytest.raises(TstarError, match="tempered head"):
        tstar.fold(network())


def test_a_model_that_is_left_starts_from_the_checkpoint_too():
    trained, model = network(), network()
    left = tstar.temper(model, Advice(leave=True), state_dict=trained.state_dict())
    assert left is model
    assert all(torch.equal(trained.state_dict()[k], v) for k, v in left.state_dict().items())
    with pytest.raises(TstarError, match="must be that of a plain model"):
        tstar.temper(model, Advice(leave=True), state_dict=tstar.temper(trained, 2.0).state_dict())
    wrong = {name: value + 1 for name, value in [*trained.state_dict().items()][:1]}
    with pytest.raises(TstarError, match="must fit the model"):
        tstar.temper(model, Advice(leave=True), state_dict=wrong)
    assert all(torch.equal(trained.state_dict()[k], v) for k, v in left.state_dict().items())


@pytest.mark.parametrize("advice", [Advice(), Advice(leave=True)])
@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": nn.BCEWithLogitsLoss()},
        {"norm": "bacth"},
        {"steps": -3},
        {"head": "nope"},
        {"backbone": "x"},
        {"backbone": -1.0},
        {"optimizer": torch.optim.SGD(network().parameters(), lr=0.1)},
        {"state_dict": [1]},
    ],
    ids=lambda wrong: "".join(wrong),
)
def test_arguments_are_checked_whatever_the_advice(advice, wrong):
    model = network()
    with pytest.raises(TstarError):
        tstar.temper(model, advice, **wrong)
    with pytest.raises(TstarError, match="already tempered"):
        tstar.temper(tstar.temper(model, 2.0), advice)


@pytest.mark.parametrize("T", [torch.tensor(3.0), torch.tensor(3), np.float32(3), np.array(3.0)])
def test_a_temperature_may_be_a_scalar_of_torch_or_numpy(T):
    head = tstar.temper(network(), T)[2]
    assert head.temperature.item() == 3
    assert isinstance(head.norm, nn.BatchNorm1d)
    with pytest.raises(TstarError, match="single number"):
        tstar.temper(network(), torch.ones(2))


@pytest.mark.parametrize("inplace", [True, False])
def test_a_plain_checkpoint_starts_a_tempered_model(inplace):
    trained, model = network(), network()
    before = copy.deepcopy(model.state_dict())
    tempered = tstar.temper(model, 3.0, state_dict=trained.state_dict(), inplace=inplace)
    assert torch.equal(tempered[2].layer.weight, trained[2].weight)
    assert torch.equal(tempered[0].weight, trained[0].weight)
    if not inplace:
        assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_a_tempered_checkpoint_does_too_and_says_if_it_brings_another_t():
    trained = tstar.temper(network(), 3.0)
    trained.train()(torch.randn(8, 6))
    again = tstar.temper(network(), 3.0, state_dict=trained.state_dict())
    assert all(torch.equal(v, again.state_dict()[k]) for k, v in trained.state_dict().items())
    with pytest.warns(TstarWarning, match=r"T = 3 takes the place of T = 5 at '2'"):
        tstar.temper(network(), 5.0, state_dict=trained.state_dict())
    with pytest.raises(TstarError, match="state_dict must fit the model"):
        tstar.temper(network(), 3.0, state_dict={"0.weight": torch.ones(2)})


def train_a_little(model, example, steps=4):
    generator = torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(example.shape, generator=generator)
        loss = model.train()(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def test_temper_train_fold_and_load_into_the_untouched_architecture():
    plain = small_convnet()
    example = torch.randn(8, 3, 16, 16)
    tempered = train_a_little(tstar.temper(plain, 7.5), example)
    folded = tstar.fold(tempered)
    torch.testing.assert_close(folded(example), tempered(example), rtol=1e-5, atol=1e-6)
    assert list(folded.state_dict()) == list(plain.state_dict())
    assert [type(m) for m in folded.modules()] == [type(m) for m in plain.modules()]
    untouched = small_convnet().eval()
    untouched.load_state_dict(folded.state_dict())
    assert torch.equal(untouched(example), folded(example))


def test_a_checkpoint_of_the_tempered_model_restores_the_temperature():
    trained = train_a_little(tstar.temper(small_convnet(), 7.5), torch.randn(8, 3, 16, 16))
    again = tstar.temper(small_convnet(), 1.0)
    with pytest.warns(tstar.TstarWarning, match=r"T = 7\.5 takes the place of T = 1 at '6'"):
        again.load_state_dict(trained.state_dict())
    x = torch.randn(2, 3, 16, 16)
    assert torch.equal(again.eval()(x), trained(x))


def test_temper_copies_unless_in_place():
    model = small_convnet()
    tempered = tstar.temper(model, 2.0)
    assert isinstance(model[6], nn.Linear)
    assert isinstance(tempered[6], TemperedHead)
    assert tstar.temper(model, 2.0, inplace=True) is model
    assert isinstance(model[6], TemperedHead)
    model[6].norm.num_batches_tracked.fill_(1)
    assert tstar.fold(model.eval(), inplace=True) is model
    assert isinstance(model[6], nn.Linear)


def test_temper_keeps_hooks_modes_dtype_and_requires_grad():
    model = small_convnet().double().eval()
    calls = []
    model[6].register_forward_hook(lambda *_: calls.append(1))
    model[0].weight.requires_grad_(False)
    tempered = tstar.temper(model, 2.0)
    tempered(torch.randn(2, 3, 8, 8, dtype=torch.float64))
    assert calls  # the layer's own hook runs
    assert tempered[6].norm.weight.dtype == torch.float64
    assert not any(m.training for m in tempered.modules())
    assert not tempered[0].weight.requires_grad
    assert tempered[6].norm.weight.requires_grad


def test_at_one_without_norm_nothing_changes_to_the_last_bit():
    model = small_convnet().eval()
    x = torch.randn(4, 3, 16, 16)
    assert torch.equal(tstar.temper(model, 1, norm=None)(x), model(x))


def test_two_heads():
    model = Twins()
    with pytest.raises(
        TstarError, match=r"Found 2 output layers \('one', 'two'\); pass head='one'"
    ):
        tstar.temper(model, 2.0)
    both = tstar.temper(model, 2.0, head="all")
    assert isinstance(both.one, TemperedHead)
    assert isinstance(both.two, TemperedHead)
    one = tstar.temper(model, 2.0, head="one")
    assert isinstance(one.two, nn.Linear)
    listed = tstar.temper(model, 2.0, head=["one", "two"])
    assert isinstance(listed.two, TemperedHead)
    folded = tstar.fold(train_a_little(both, torch.randn(8, 6)))
    assert list(folded.state_dict()) == list(model.state_dict())


def test_a_record_names_the_head():
    model = small_convnet()
    head = tstar.find_head(model)
    assert isinstance(tstar.temper(model, 2.0, head=head)[6], TemperedHead)


def test_untemper_gives_the_layers_back():
    model = small_convnet()
    again = tstar.untemper(tstar.temper(model, 3.0))
    assert all(
        torch.equal(a, b)
        for a, b in zip(again.state_dict().values(), model.state_dict().values(), strict=True)
    )


def test_a_model_that_is_its_own_head():
    tempered = tstar.temper(nn.Linear(6, 4), 2.0)
    assert isinstance(tempered, TemperedHead)
    with pytest.raises(TstarError, match="inplace=False"):
        tstar.temper(nn.Linear(6, 4), 2.0, inplace=True)


def test_a_shared_head_is_replaced_everywhere():
    class Alias(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)
            self.head = self.fc

        def forward(self, x):
            return self.head(x)

    tempered = tstar.temper(Alias(), 2.0)
    assert tempered.fc is tempered.head
    assert isinstance(tempered.head, TemperedHead)


def test_tempering_twice_is_refused():
    with pytest.raises(TstarError, match="set_temperature"):
        tstar.temper(tstar.temper(small_convnet(), 2.0), 2.0)


def test_folding_what_is_not_tempered_is_refused():
    with pytest.raises(TstarError, match=r"call tstar\.temper first"):
        tstar.fold(small_convnet())


def test_wrapped_models():
    model = small_convnet()
    parallel = nn.DataParallel(model)
    with pytest.raises(TstarError, match=r"before it is wrapped, got DataParallel"):
        tstar.temper(parallel, 2.0)
    with pytest.raises(TstarError, match="compiled graph"):
        tstar.temper(torch.compile(model), 2.0)
    assert tstar.find_head(parallel).path == "6"
    tempered = train_a_little(tstar.temper(model, 2.0), torch.randn(4, 3, 8, 8))
    assert type(tstar.fold(torch.compile(tempered))) is nn.Sequential


def test_compiled_whole_without_a_graph_break():
    tempered = tstar.temper(small_convnet(), 3.0).eval()
    compiled = torch.compile(tempered, fullgraph=True, backend="aot_eager")
    x = torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(compiled(x), tempered(x))


@pytest.mark.parametrize(("parameters", "runs"), [(29_000_000, 1), (30_000_000, 0)])
def test_a_large_model_is_not_run_to_see_that_its_head_is_called(parameters, runs):
    model, calls = network(), []
    model[0].register_parameter("large", nn.Parameter(torch.empty(parameters)))
    model[0].register_forward_hook(lambda *_: calls.append(1))
    tstar.temper(model, 2.0, head="2", inplace=True)
    assert len(calls) == runs


def test_the_advice_s_optimizer_counts_only_where_it_trains_this_model():
    model, other = network(), network()
    own = torch.optim.SGD(model.parameters(), lr=0.1)
    tempered = tstar.temper(model, Advice(optimizer=own))
    assert tempered is model  # in place, since the optimizer holds its parameters
    assert sum(len(group["params"]) for group in own.param_groups) == 6
    elsewhere = torch.optim.SGD(other.parameters(), lr=0.1)
    plain = network()
    assert tstar.temper(plain, Advice(optimizer=elsewhere)) is not plain
    with pytest.raises(TstarError, match="must hold the parameters of the model's output layer"):
        tstar.temper(plain, Advice(optimizer=own), optimizer=elsewhere)
    with pytest.raises(TstarError, match="a copy would not be trained"):
        tstar.temper(other, 3.0, optimizer=elsewhere, inplace=False)


class Bound(nn.Module):
    """Calls its output layer through a closure, past whatever takes its place."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
        layer = self.fc
        self.run = lambda x: layer(x)

    def forward(self, x):
        return self.run(x)


def test_a_layer_that_is_called_past_the_head_is_noticed_and_given_back():
    model = Bound()
    with pytest.raises(TstarError, match="calls the layer 'fc' past the norm and T"):
        tstar.temper(model, 2.0, example_input=torch.randn(8, 6), inplace=True)
    assert isinstance(model.fc, nn.Linear)


def test_what_cannot_be_copied_or_loaded_says_what_to_do():
    class Fixed(nn.Sequential):
        def __deepcopy__(self, memo):
            raise TypeError("no")

    model = Fixed(nn.Linear(6, 8), nn.Linear(8, 4))
    with pytest.raises(TstarError, match=r"raised TypeError: no\); pass inplace=True"):
        tstar.temper(model, 2.0)
    assert tstar.temper(model, 2.0, inplace=True) is model
    with pytest.raises(TstarError, match="state_dict must fit the model"):
        tstar.temper(network(), 2.0, state_dict={"9.weight": torch.ones(2)})


def test_a_model_on_meta_is_tempered_without_a_run():
    with torch.device("meta"):
        model = network()
    assert tstar.temper(model, 2.0, head="2")[2].temperature.is_meta


def test_advice_to_leave_a_model_keeps_it_unless_the_user_wants_a_copy():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert tstar.temper(model, Advice(leave=True), inplace=True) is model
    assert tstar.temper(model, Advice(leave=True, optimizer=optimizer)) is model
    assert tstar.temper(model, Advice(leave=True), inplace=False) is not model
    left = tstar.temper(network(), Advice(leave=True))
    assert tstar.fold(left, inplace=True) is left
    assert tstar.fold(left) is not left


@pytest.mark.parametrize("bad", ["2", b"2", True, None, [2.0], 0, float("nan")])
def test_what_is_no_temperature_or_number_of_steps_is_refused(bad):
    model = network()
    with pytest.raises(TstarError, match=r"^temperature must be"):
        tstar.temper(model, bad, inplace=True)
    if bad is not None:
        with pytest.raises(TstarError, match=r"^steps must be"):
            tstar.temper(model, 2.0, steps=bad, inplace=True)
    assert not any(isinstance(module, TemperedHead) for module in model.modules())


@pytest.mark.parametrize("T", [0.0, -2.0, float("nan")])
def test_a_checkpoint_that_cannot_be_trained_leaves_the_model_as_it_was(T):
    model = small_convnet()
    state = tstar.temper(model, 2.0).state_dict()
    plain = {name: value.clone() for name, value in model.state_dict().items()}
    key = next(name for name in state if name.endswith("temperature"))
    wrong = {
        name: value + 1 if value.is_floating_point() else value for name, value in state.items()
    }
    with pytest.warns(TstarWarning), pytest.raises(TstarError, match=key):
        tstar.temper(model, 2.0, state_dict={**wrong, key: torch.tensor(T)}, inplace=True)
    first = next(iter(plain))
    with pytest.raises(TstarError, match="must fit the model"):
        tstar.temper(model, 2.0, state_dict={first: plain[first] + 1}, inplace=True)
    assert model.state_dict().keys() == plain.keys()
    assert all(torch.equal(plain[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("state", [3, [1], "model.pt", {1: torch.zeros(1)}])
def test_what_is_no_state_dict(state):
    with pytest.raises(TstarError, match="state_dict must map"):
        tstar.temper(small_convnet(), 2.0, state_dict=state)


@pytest.mark.parametrize("head", [3, [], ["6", "6"], b"6"])
def test_what_names_no_output_layer(head):
    with pytest.raises(TstarError, match="head must be"):
        tstar.temper(small_convnet(), 2.0, head=head)


class Tasks(nn.Module):
    def __init__(self, give):
        super().__init__()
        self.body, self.give = nn.Linear(6, 8), give
        self.heads = nn.ModuleDict({"color": nn.Linear(8, 5), "shape": nn.Linear(8, 7)})

    def forward(self, x, task="color"):
        h = self.body(x).relu()
        if self.give is None:
            return self.heads[task](h)
        return self.give((name, head(h)) for name, head in self.heads.items())


@pytest.mark.parametrize("give", [dict, lambda pairs: tuple(logits for _, logits in pairs)])
def test_the_heads_of_several_tasks_are_named(give):
    model = Tasks(give)
    for head in (None, "all"):
        with pytest.raises(TstarError, match="temper also takes a list of several"):
            tstar.temper(model, 2.0, head=head)
    both = tstar.temper(model, 2.0, head=["heads.color", "heads.shape"])
    assert {type(head) for head in both.heads.values()} == {TemperedHead}


def test_heads_that_are_chosen_by_name():
    said = r"only 'heads.color' is tempered, not 'heads.shape'; pass head=\['heads.color', 'heads.shape'\]"
    for head in (None, "all"):
        with pytest.warns(TstarWarning, match=said):
            tstar.temper(Tasks(None), 2.0, head=head)
    with pytest.warns(TstarWarning, match=said):
        tstar.temper(Tasks(None), tstar.recommend(Tasks(None)))
    tstar.temper(Tasks(None), 2.0, head="heads.color")  # and no warning: it is meant
