"""The norm's statistics after short runs."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tstar
from tstar import TstarError


def data(n=512):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 4
    centers = 2 * torch.randn(4, 10, generator=generator)
    return TensorDataset(centers[y] + torch.randn(n, 10, generator=generator), y)


def short_run(advised=None):
    """A run so short that statistics of its beginning are still in the norm at its end."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
    model = tstar.temper(model, 2.0, steps=advised)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(data(), batch_size=32)
    for _, (x, y) in zip(range(12), loader, strict=False):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def gap(model):
    """How far eval mode is from the batch's own statistics, in logits."""
    x = data().tensors[0]
    twin = copy.deepcopy(model).train()
    with torch.no_grad():
        return float((model.eval()(x) - twin(x)).abs().mean())


def test_a_short_run_gets_a_shorter_memory():
    quick = tstar.temper(nn.Linear(4, 3), 2.0, steps=20).norm
    assert quick.momentum == 0.5
    assert tstar.temper(nn.Linear(4, 3), 2.0, steps=50).norm.momentum == pytest.approx(0.2)
    for many in (None, 100, 10_000):
        assert tstar.temper(nn.Linear(4, 3), 2.0, steps=many).norm.momentum == 0.1


def test_the_shorter_memory_follows_the_weights():
    assert gap(short_run(advised=12)) < 0.7 * gap(short_run())


def test_recalibration_gives_the_statistics_of_the_data():
    model = short_run()
    before = copy.deepcopy(model.state_dict())
    model.train()
    assert tstar.recalibrate(model, DataLoader(data(), batch_size=128)) is model
    features = model[:2](data().tensors[0])
    norm = model[2].norm
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
    assert gap(model) < 0.05


def test_how_many_batches_and_what_is_refused():
    model = short_run()
    tstar.recalibrate(model, DataLoader(data(), batch_size=32), batches=3)
    assert int(model[2].norm.num_batches_tracked) == 3
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(TstarError, match="at least one batch"):
        tstar.recalibrate(model, [data().tensors[0][:1]])
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    with pytest.raises(TstarError, match="no batch norm"):
        tstar.recalibrate(tstar.temper(nn.Linear(3, 2), 2.0, norm=None), [])
    with pytest.raises(TstarError, match="no tempered head"):
        tstar.recalibrate(nn.Linear(3, 2), [])


def test_batches_that_do_not_do_leave_the_statistics_as_they_were():
    model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), 2.0)
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    tstar.recalibrate(model, [x])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for loader, match in (
        ([x, x * float("nan")], "must be finite"),
        ([x, 3], "raised TypeError"),
        ([x, x[:, :2]], "raised RuntimeError"),
        (3, "must give batches"),
    ):
        with pytest.raises(TstarError, match=match):
            tstar.recalibrate(model, loader)
    for batches in (0, -1, float("nan"), "2"):
        with pytest.raises(TstarError, match="batches must be"):
            tstar.recalibrate(model, [x], batches=batches)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.Embedding(9, 6), nn.Linear(6, 3)

    def forward(self, ids, mask=None):
        h = self.embedding(ids)
        return self.fc((h if mask is None else h * mask[..., None]).mean(1))


def test_no_input_is_lost_in_silence():
    """The mask of (ids, mask, labels), without which the features are others."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(9, (64, 5), generator=generator)
    mask, y = (torch.rand(64, 5, generator=generator) < 0.5).float(), torch.arange(64) % 3
    model = tstar.temper(Masked(), 2.0, head="fc")
    before = copy.deepcopy(model.state_dict())
    loader = DataLoader(TensorDataset(ids, mask, y), batch_size=32)
    with pytest.raises(TstarError, match=r"got 3 parts.*\(\(ids, mask\) for ids, mask, labels in"):
        tstar.recalibrate(model, loader)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    tstar.recalibrate(model, ((i, m) for i, m, _ in loader))
    given = [(model.embedding(i) * m[..., None]).mean(1) for i, m, _ in loader]
    expected = torch.stack([h.mean(0) for h in given]).mean(0)
    torch.testing.assert_close(model.fc.norm.running_mean, expected.detach())
