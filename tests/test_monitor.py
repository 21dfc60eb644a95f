"""Is the head trained? The optimizer, the norm's statistics, and padding."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tstar
from tstar import TstarError, TstarWarning, monitor

X, Y = torch.randn(16, 6), torch.arange(16) % 4


def network(bias=True):
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4, bias=bias))


def steps(model, *optimizers, n=3, x=X, y=Y):
    for _ in range(n):
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()


def test_a_live_optimizer_trains_norm_and_head():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    tempered = tstar.temper(model, 4.0, optimizer=optimizer)
    assert tempered is model
    before = copy.deepcopy(model.state_dict())
    steps(model, optimizer)
    after = model.state_dict()
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    assert {key for key, _ in model.named_parameters()} <= moved
    torch.testing.assert_close(tstar.fold(model.eval())(X), model(X))


def test_the_norm_joins_the_group_of_the_heads_bias():
    """Where biases have a group without weight decay, norms belong there too; the schedule's groups stay."""
    model = network()
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1]},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    tstar.temper(model, 4.0, optimizer=optimizer)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 4]
    steps(model, optimizer)
    scheduler.step()
    bare = network(bias=False)
    one = torch.optim.SGD(bare.named_parameters(), lr=0.1)
    tstar.temper(bare, 4.0, optimizer=one)
    assert one.param_groups[0]["param_names"][-2:] == ["2.norm.weight", "2.norm.bias"]


def test_an_optimizer_of_another_model_is_refused():
    other = torch.optim.SGD(network().parameters(), lr=0.1)
    for optimizer, message in ((other, r"after tstar\.temper"), (3, "torch optimizer")):
        with pytest.raises(TstarError, match=message):
            tstar.temper(network(), 4.0, optimizer=optimizer)


def test_several_optimizers_share_a_head_without_a_word():
    """Matrices to one, vectors to another, as with Muon; and a body apart from its head."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for split in (lambda n, p: p.ndim > 1, lambda n, p: n.startswith("0.")):
            model = tstar.temper(network(), 4.0)
            named = list(model.named_parameters())
            one = torch.optim.SGD([p for n, p in named if split(n, p)], lr=0.1)
            two = torch.optim.Adam([p for n, p in named if not split(n, p)], lr=0.01)
            steps(model, one, two)


def of_one(model, optimizer):
    for x, y in zip(X, Y, strict=True):
        optimizer.zero_grad()
        F.cross_entropy(model(x[None]), y[None]).backward()
        optimizer.step()


def frozen_norms(model, optimizer):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    steps(model, optimizer)


@pytest.mark.parametrize("train", [of_one, frozen_norms])
def test_a_norm_that_never_learns_is_reported_at_the_end_of_the_first_epoch(train):
    model = tstar.temper(network(), 4.0).train()
    train(model, torch.optim.SGD(model.parameters(), lr=0.01))
    with pytest.warns(TstarWarning, match="the norm before it has seen no batch"):
        model.eval()
    model.train()
    model.eval()  # said once


class Tagger(nn.Module):
    """One label a token; takes the mask as transformers' models do."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(20, 8), nn.Linear(8, 4)

    def forward(self, input_ids, attention_mask=None):
        return self.out(self.words(input_ids))


IDS = torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 9, 0]])


MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])


def test_statistics_logits_and_gradients_are_those_of_the_tokens_alone():
    torch.manual_seed(0)
    plain = Tagger()
    packed = tstar.temper(plain, 3.0, head="out")
    padded = tstar.temper(plain, 3.0, head="out")
    unmasked = tstar.temper(plain, 3.0, head="out")
    monitor.mask_padding(padded)
    alone = packed(IDS[MASK.bool()][None])
    among = padded(input_ids=IDS, attention_mask=MASK)
    torch.testing.assert_close(among[MASK.bool()][None], alone)
    for logits in (alone, among[MASK.bool()][None]):
        nn.functional.cross_entropy(logits[0], torch.arange(7) % 4).backward()
    torch.testing.assert_close(padded.out.norm.running_mean, packed.out.norm.running_mean)
    torch.testing.assert_close(padded.out.norm.running_var, packed.out.norm.running_var)
    for one, other in zip(padded.parameters(), packed.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    unmasked(IDS, attention_mask=MASK)
    assert not torch.allclose(unmasked.out.norm.running_mean, packed.out.norm.running_mean)


def test_eval_mode_and_folding_do_not_see_the_mask():
    model = tstar.temper(Tagger(), 3.0, head="out")
    monitor.mask_padding(model)
    model(IDS, attention_mask=MASK)
    model.eval()
    tempered = model(IDS, attention_mask=MASK)
    torch.testing.assert_close(tempered, model(IDS))
    torch.testing.assert_close(tstar.fold(model)(IDS), tempered)


def test_a_mask_holds_for_its_call_and_a_wrong_one_is_refused():
    model = tstar.temper(Tagger(), 3.0, head="out")
    assert monitor.mask_padding(model) is model
    model(IDS, attention_mask=MASK)
    model(IDS)
    assert model.out.mask is None
    with pytest.raises(TstarError, match="shape"):
        model(IDS, attention_mask=MASK[:, :3])
    with pytest.raises(TstarError, match=r"'attention_maks'.*'input_ids', 'attention_mask'"):
        monitor.mask_padding(model, "attention_maks")


def test_a_mask_by_position_is_seen():
    model = tstar.temper(Tagger(), 3.0, head="out")
    monitor.mask_padding(model)
    model(IDS, MASK)
    assert model.out.mask is MASK


def data(n=512):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 4
    centers = 2 * torch.randn(4, 10, generator=generator)
    return TensorDataset(centers[y] + torch.randn(n, 10, generator=generator), y)


def test_a_short_run_gets_a_shorter_memory():
    quick = tstar.temper(nn.Linear(4, 3), 2.0, steps=20).norm
    assert quick.momentum == 0.5
    assert tstar.temper(nn.Linear(4, 3), 2.0, steps=50).norm.momentum == pytest.approx(0.2)
    for many in (None, 100, 10_000):
        assert tstar.temper(nn.Linear(4, 3), 2.0, steps=many).norm.momentum == 0.1


def test_recalibration_gives_the_statistics_of_the_data():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
    model = tstar.temper(model, 2.0).train()
    x = data().tensors[0]
    model(5 + 3 * x)  # statistics of something else
    before = copy.deepcopy(model.state_dict())
    assert monitor.recalibrate(model, DataLoader(data(), batch_size=128)) is model
    features, norm = model[:2](x), model[2].norm
    torch.testing.assert_close(norm.running_mean, features.mean(0), rtol=1e-4, atol=1e-5)
    batches = features.split(128)
    torch.testing.assert_close(norm.running_var, torch.stack([b.var(0) for b in batches]).mean(0))
    assert norm.momentum == 0.1
    assert model.training
    assert norm.training
    changed = {k for k, v in model.state_dict().items() if not torch.equal(v, before[k])}
    assert changed == {
        f"2.norm.{n}" for n in ("running_mean", "running_var", "num_batches_tracked")
    }
    torch.testing.assert_close(model.eval()(x), model.train()(x), rtol=0.1, atol=0.05)


def test_a_model_without_a_norm_to_recalibrate_comes_back():
    for model in (nn.Linear(3, 2), tstar.temper(nn.Linear(3, 2), 2.0, norm=None)):
        assert monitor.recalibrate(model, []) is model


def test_batches_that_do_not_do_leave_the_statistics_as_they_were():
    model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), 2.0)
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    monitor.recalibrate(model, [x])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for loader, match in (
        ([x[:1]], "at least one batch"),
        ([x, x * float("nan")], "all finite"),
        ([x, 3], "raised: TypeError"),
        ([x, x[:, :2]], "raised: RuntimeError"),
        (3, "raised: TypeError"),
    ):
        with pytest.raises(TstarError, match=match):
            monitor.recalibrate(model, loader)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
