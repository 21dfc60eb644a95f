"""temper, fold and untemper."""

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tests.networks import small_convnet
from tstar import TstarError, TstarWarning
from tstar.head import TemperedHead


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def test_the_paper_in_one_line():
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 10))
    head = tstar.temper(model)[2]
    assert isinstance(head.norm, nn.BatchNorm1d)
    assert head.temperature.item() == pytest.approx(tstar.temperature(64, 10))
    full = tstar.temper(model, csg=5.0)[2]
    assert full.temperature.item() == pytest.approx(tstar.temperature(64, 10, 5.0))
    base = tstar.temper(model, variant="base")[2]
    assert base.temperature.item() == pytest.approx(tstar.temperature(64))
    with pytest.raises(TstarError, match="leave temperature out"):
        tstar.temper(model, 4.0, csg=5.0)


def test_outside_the_papers_range_it_says_so_once():
    with pytest.warns(TstarWarning, match=r"M = 8 is outside.*K = 4") as seen:
        tstar.temper(network())
    assert len(seen) == 1
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 10))
    with pytest.warns(TstarWarning, match="measured with SGD, and not with AdamW"):
        tstar.temper(model, optimizer=torch.optim.AdamW(model.parameters()))


def test_an_optimizer_that_derives_from_sgd_is_sgd(recwarn):
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 10))
    own = type("Own", (torch.optim.SGD,), {})
    tstar.temper(model, optimizer=own(model.parameters(), lr=0.1))
    assert not recwarn.list


def test_a_plain_model_folds_to_itself():
    model = network()
    assert tstar.fold(model) is model
    assert tstar.untemper(model) is model
    folded = tstar.fold(train_a_little(tstar.temper(model, 2.0), torch.randn(4, 6)))
    assert tstar.fold(folded) is folded


@pytest.mark.parametrize("T", [torch.tensor(3.0), torch.tensor(3), np.float32(3), np.array(3.0)])
def test_a_temperature_may_be_a_scalar_of_torch_or_numpy(T):
    head = tstar.temper(network(), T)[2]
    assert head.temperature.item() == 3
    assert isinstance(head.norm, nn.BatchNorm1d)
    with pytest.raises(TstarError, match="must be a number"):
        tstar.temper(network(), torch.ones(2))


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


def test_wrapped_models():
    model = small_convnet()
    parallel = nn.DataParallel(model)
    with pytest.raises(TstarError, match=r"before it is wrapped, .*got DataParallel"):
        tstar.temper(parallel, 2.0)
    with pytest.raises(TstarError, match="got OptimizedModule"):
        tstar.temper(torch.compile(model), 2.0)
    assert tstar.find_head(parallel).path == "6"
    tempered = train_a_little(tstar.temper(model, 2.0), torch.randn(4, 3, 8, 8))
    assert type(tstar.fold(torch.compile(tempered))) is nn.Sequential


@pytest.mark.parametrize("bad", ["2", b"2", True, [2.0], 0, float("nan")])
def test_what_is_no_temperature_or_number_of_steps_is_refused(bad):
    model = network()
    with pytest.raises(TstarError, match=r"^temperature must be"):
        tstar.temper(model, bad, inplace=True)
    with pytest.raises(TstarError, match=r"^steps must be"):
        tstar.temper(model, 2.0, steps=bad, inplace=True)
    assert not any(isinstance(module, TemperedHead) for module in model.modules())


@pytest.mark.parametrize("head", ["classifier", 3, [], ["6", "6"], b"6"])
def test_what_names_no_output_layer(head):
    with pytest.raises(TstarError, match=r"head must be.*the last candidates are '6'"):
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


@pytest.mark.filterwarnings("ignore:T. = ")
def test_each_head_gets_the_temperature_of_its_own_classes():
    both = tstar.temper(Tasks(dict), head=["heads.color", "heads.shape"])
    found = {head.out_features: head.temperature.item() for head in both.heads.values()}
    assert found == {K: pytest.approx(tstar.temperature(8, K)) for K in (5, 7)}
