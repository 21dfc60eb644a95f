"""The advice: what it reads, what it says, and that it touches nothing."""

import copy
import dataclasses
import io
import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
)
from torch.utils.data.distributed import DistributedSampler

import tstar
from tstar import TstarError
from tstar.formula import similar
from tstar.formula.choice import choose_variant


def model(M=64, K=10):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(12, M), nn.BatchNorm1d(M), nn.ReLU(), nn.Linear(M, K)
    )


@pytest.fixture
def taken(monkeypatch):
    """As if BN and T at the user's rate had gained in every group, and every training were near."""
    choice = {"recipe": "bn", "gain": 2.0, "low": 1.0, "high": 3.0, "trainings": 20}
    near = similar.Expectation(2.0, 1.0, 3.0, 10, 0, 20, 0.1, far=False, gained=True, rows=())
    monkeypatch.setattr(similar, "choice", lambda family, scenario=None: choice)
    monkeypatch.setattr(similar, "nearest", lambda *given: near)


def codes(advice):
    return {(n.severity, n.code) for n in advice.notices}


def test_it_reads_m_and_k_from_the_model():
    advice = tstar.recommend(model(64, 10))
    assert (advice.num_features, advice.num_classes, advice.head.path) == (64, 10, "4")
    assert advice.variant == "cn"
    assert float(advice) == advice.temperature == tstar.temperature(64, 10)


def test_it_applies():
    net = model()
    tempered = tstar.temper(net, tstar.recommend(net))
    assert tempered[4].temperature.item() == pytest.approx(tstar.temperature(64, 10))


def test_the_formula_of_the_right_variant():
    net = model(64, 10)
    assert tstar.recommend(net, csg=5.0, scenario="finetune").temperature == tstar.temperature(
        64, 10, 5.0
    )
    assert tstar.recommend(net, csg=5.0, variant="csg").temperature == tstar.temperature(
        64, csg=5.0
    )
    own = tstar.Coefficients("mine", alpha=1.0, beta=0.0)
    assert tstar.recommend(net, coefficients=own).temperature == 8.0


@pytest.mark.parametrize("csg", [0.0, 0.1, 1.38, 88.8, 500.0])
def test_a_csg_outside_the_papers_range_falls_back_to_the_class_count(csg):
    for scenario in ("scratch", "finetune"):
        advice = tstar.recommend(model(), csg=csg, scenario=scenario)
        assert advice.variant == "cn"
        assert "outside the paper's 1.39–88.72" in advice.reason
        assert advice.csg == csg


def test_the_default_variant_follows_the_evidence():
    from importlib.resources import files
    from json import loads

    evidence = loads(
        (files("tstar") / "paper" / "default_variant.json").read_text(encoding="utf-8")
    )
    for scenario in ("scratch", "finetune"):
        assert choose_variant(5.0, scenario)[0] == evidence[scenario]["variant"]
        assert choose_variant(None, scenario)[0] == evidence["without_csg"][scenario]["variant"]


def test_no_csg_of_token_ids():
    ids, y = torch.randint(0, 9, (40, 4)), torch.arange(40) % 10
    tokens = tstar.data.DataSet("texts", "tokens", ids, y, ids, y, tuple("abcdefghij"))
    advice = tstar.recommend(model(), tokens)
    assert advice.csg is None
    assert any("token ids" in notice.message for notice in advice.notices)


def test_it_measures_the_data():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand((60, 3, 8, 8), generator=generator)
    y = torch.arange(60) % 3
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 3))
    advice = tstar.recommend(net, (x, y))
    assert advice.csg == pytest.approx(float(tstar.csg(x, y)))
    mismatch = tstar.recommend(model(64, 10), (x, y))
    assert ("warning", "class-count") in codes(mismatch)
    assert ("warning", "class-count") in codes(tstar.recommend(model(64, 3), "digits"))
    assert ("warning", "class-count") not in codes(tstar.recommend(model(64, 10), "digits"))
    broken = tstar.recommend(net, (x[:2], y[:2]))  # too few for their difficulty
    assert ("caution", "csg-failed") in codes(broken)
    assert broken.csg is None


@pytest.mark.parametrize("how", [{}, {"optimizer": ("sgd", 0.1), "steps": 300, "batch_size": 32}])
def test_what_are_no_labeled_samples_is_refused_however_one_trains(how):
    x = torch.rand(20, 64)
    for data, message in ((5, "data must be"), ((x, torch.rand(20, 3)), "labels"), ((x[:0], x[:0, 0]), "two samples")):  # fmt: skip
        with pytest.raises(TstarError, match=message):
            tstar.recommend(model(), data, **how)


def sgd(net, lr):
    return torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)


def test_the_papers_own_way_of_training_raises_no_alarm():
    net = model(256, 100)
    advice = tstar.recommend(net, csg=25.5, optimizer=sgd(net, 0.1), steps=78_000, batch_size=128)
    assert not advice.warnings


def test_a_small_budget_lowers_the_temperature_or_is_a_warning(taken):
    net = model()
    aware = tstar.recommend(net, optimizer=sgd(net, 0.01), steps=930)
    assert aware.temperature == tstar.temperature(64, 10, lr=0.01, optimizer="sgd", steps=930)
    assert aware.temperature < 3 < tstar.temperature(64, 10)
    assert "The paper's T* for 200 epochs of SGD at 0.1 would be 5.354" in str(aware)
    assert "Your training asks for" in str(aware)
    assert "Your training asks for" in aware._repr_html_()
    named = tstar.recommend(net, optimizer=sgd(net, 0.01), steps=930, variant="cn")
    assert named.temperature == tstar.temperature(64, 10)
    assert ("warning", "small-budget") in codes(named)
    assert named.warnings
    assert ("caution", "small-budget") in codes(
        tstar.recommend(net, optimizer=sgd(net, 0.1), steps=930, variant="cn")
    )
    fine = tstar.recommend(net, optimizer=sgd(net, 0.1), steps=3_720, variant="cn")
    assert "small-budget" not in {code for _, code in codes(fine)}


def test_below_one_sgd_is_doubtful_and_more_so_when_fine_tuning(taken):
    net = model(64, 100)
    how = {"optimizer": sgd(net, 0.01), "steps": 200}
    scratch = tstar.recommend(net, **how)
    assert scratch.temperature < 1
    assert ("caution", "sgd-below-one") in codes(scratch)
    tuned = tstar.recommend(net, scenario="finetune", **how)
    assert ("caution", "sgd-below-one") in codes(tuned)
    assert tuned.temperature == 1 > tuned.explanation.computed  # number and caution: one decision
    assert "T = 1 is advised" in str(tuned)
    assert str(tuned).count("Train at") == 1
    longer = tstar.recommend(net, optimizer=sgd(net, 0.1), steps=2_000)
    adam = tstar.recommend(net, optimizer=torch.optim.AdamW(net.parameters(), lr=3e-4), steps=100)
    for advice in (longer, adam):
        assert advice.temperature >= 1
        assert "sgd-below-one" not in {code for _, code in codes(advice)}


def test_the_papers_temperature_is_shown_beside_the_laws(taken):
    net = model()
    advice = tstar.recommend(net, optimizer=sgd(net, 0.1), steps=78_000, batch_size=128)
    assert advice.explanation.bound == tstar.temperature(64, 10)
    assert "α·sqrt(M)" in str(advice)
    assert not advice.warnings


def test_momentum_is_read_from_the_optimizer(taken):
    net = model()
    plain = torch.optim.SGD(net.parameters(), lr=0.1)
    heavy, light = (tstar.recommend(net, optimizer=o, steps=930) for o in (sgd(net, 0.1), plain))
    assert float(heavy) / float(light) == pytest.approx(10**0.25)


def test_the_group_of_the_output_layer_counts(taken):
    net = model()
    *body, head = net
    rest = [p for module in body for p in module.parameters()]
    groups = [
        {"params": rest, "lr": 0.1, "momentum": 0.0},
        {"params": head.parameters(), "lr": 0.01, "momentum": 0.9},
    ]
    both = torch.optim.SGD(groups, lr=1.0)
    expected = tstar.temperature(64, 10, optimizer="sgd", lr=0.01, steps=800)
    assert float(tstar.recommend(net, optimizer=both, steps=800)) == expected


def test_a_cycle_counts_with_its_highest_rate_and_the_momentum_given(taken):
    net = model()
    plain = float(tstar.recommend(net, optimizer=sgd(net, 0.1), steps=300))
    cycled = sgd(net, 0.1)
    torch.optim.lr_scheduler.OneCycleLR(cycled, max_lr=0.1, total_steps=300)
    assert cycled.param_groups[0]["lr"] < 0.01  # it starts low
    assert float(tstar.recommend(net, optimizer=cycled, steps=300)) == plain


def test_sets_with_a_budget_are_told_how_one_trains():
    from tstar.formula.coefficients import Coefficients
    from tstar.formula.law import Budget

    net = model()
    own = Coefficients("mine", 0.4, 1.0, delta=-0.1, budget=Budget(0.1, 0.01))
    advice = tstar.recommend(net, optimizer=("sgd", 0.1), steps=np.int64(1000), coefficients=own)
    assert advice.temperature == pytest.approx(0.1 * (100 * 64 / 10) ** 0.5)
    named = tstar.recommend(net, optimizer=("sgd", np.float32(0.1)), steps=1000, variant="budget")
    assert named.variant == "budget"
    with pytest.raises(TstarError, match="lr, optimizer and steps must be given"):
        tstar.recommend(net, coefficients=own)
    with pytest.raises(TstarError, match="finite"):
        tstar.recommend(net, optimizer=("sgd", float("inf")))


def test_the_clip_of_a_formula_that_is_not_used_is_not_told(taken):
    advice = tstar.recommend(model(4, 1000), optimizer=("sgd", 0.001), steps=100)
    assert "clipped" not in {notice.code for notice in advice.notices}
    assert advice.temperature == 0.25


def test_budgets_that_were_not_measured_are_flagged(taken):
    tiny = tstar.recommend(model(), optimizer=("adamw", 1e-6), steps=10)
    assert ("caution", "extrapolation") in codes(tiny)


def test_what_else_a_careful_colleague_would_say():
    net = model()
    adam = tstar.recommend(
        net, optimizer=torch.optim.AdamW(net.parameters(), lr=1e-3), steps=500, variant="cn"
    )
    assert {("caution", "other-optimizer"), ("caution", "few-steps")} <= codes(adam)
    assert ("caution", "other-lr") in codes(
        tstar.recommend(net, optimizer=("sgd", 0.01), steps=50_000, variant="cn")
    )
    assert ("note", "other-lr") in codes(
        tstar.recommend(net, optimizer=("SGD", 0.01), variant="cn", scenario="finetune")
    )
    assert ("caution", "label-smoothing") in codes(tstar.recommend(net, label_smoothing=0.1))
    assert ("caution", "few-classes") in codes(tstar.recommend(model(64, 2)))
    assert ("warning", "batch-of-one") in codes(tstar.recommend(net, batch_size=1))
    assert ("caution", "unknown-training") in codes(tstar.recommend(net))
    assert ("caution", "extrapolation") in codes(tstar.recommend(model(16, 10)))
    assert ("caution", "clipped") in codes(tstar.recommend(model(4, 1000)))


class Attention(nn.Module):
    def forward(self, x):
        return x


def test_a_transformer_at_a_high_rate():
    net = nn.Sequential(nn.Linear(12, 64), nn.LayerNorm(64), Attention(), nn.Linear(64, 10))
    assert ("warning", "transformer-lr") in codes(
        tstar.recommend(net, optimizer=("sgd", 0.1), steps=50_000)
    )
    assert ("warning", "transformer-lr") not in codes(
        tstar.recommend(net, optimizer=("sgd", 0.01), steps=50_000)
    )


def test_the_initial_rate_of_a_warm_up_counts(taken):
    net = model()
    optimizer = sgd(net, 0.1)
    torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01)
    advice = tstar.recommend(net, optimizer=optimizer, steps=300)
    assert float(advice) == float(tstar.recommend(net, optimizer=sgd(net, 0.1), steps=300))


def test_nothing_is_touched():
    net, data = model().train(), (torch.rand(20, 12), torch.arange(20) % 10)
    before, state = copy.deepcopy(net.state_dict()), torch.get_rng_state()
    advice = tstar.recommend(net, data)
    assert advice.csg is not None  # the data were really read
    assert net.training
    assert all(m.training for m in net.modules())
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert torch.equal(state, torch.get_rng_state())


def test_it_prints_well():
    advice = tstar.recommend(model(), csg=0.1, label_smoothing=0.1)
    text = str(advice)
    assert text.startswith("Train at T = 5.354")
    assert "δ·ln K" in text
    assert "caution: Label smoothing" in text
    html = advice._repr_html_()
    assert (
        "<b>Train at T = 5.354, with a BatchNorm before the output layer, if you train as" in html
    )
    from rich.console import Console

    console = Console(record=True, width=120, file=io.StringIO())
    console.print(advice)
    assert "Train at T = 5.354" in console.export_text()

    assert json.loads(json.dumps(advice.to_dict()))["head"] == "4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(scenario="finetuning"), "did you mean 'finetune'"),
        (dict(steps=0), "steps must be"),
        (dict(steps=1.5), "steps must be"),
        (dict(batch_size=-1), "batch_size must be"),
        (dict(label_smoothing=1.0), "label_smoothing"),
        (dict(optimizer=3), "optimizer must be"),
        (dict(optimizer=("sgd", -1)), "lr must be positive"),
        (dict(num_classes=1), "num_classes must be"),
        (dict(csg=-1.0), "csg"),
        (dict(head="nowhere"), "path of a layer"),
        (dict(head="all"), "needs one output layer"),
        (dict(head=torch.ones(2)), "head must be the path"),
        (dict(norm="layer"), "Unknown norm 'layer'"),
        (dict(norm=np.array([1, 2])), "Unknown norm"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(TstarError, match=message):
        tstar.recommend(model(), **arguments)


def test_a_single_logit_is_refused():
    with pytest.raises(TstarError, match="at least two classes, got a single logit"):
        tstar.recommend(model(64, 1))


def test_only_what_is_used_is_measured():
    class Reads:
        def __len__(self):
            return 100

        def __getitem__(self, index):
            raise AssertionError("the data were read")

    net = model()
    advice = tstar.recommend(net, Reads(), optimizer=sgd(net, 0.1), steps=100)
    assert advice.csg is None
    assert tstar.recommend(net, Reads(), scenario="scratch").variant == "cn"
    read = tstar.recommend(net, Reads(), scenario="finetune")
    assert "the data were read" in str(read)


def test_epochs_count_with_the_length_of_the_data():
    net = model()
    data = torch.utils.data.TensorDataset(torch.rand(100, 12), torch.arange(100) % 10)
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    how = {"optimizer": ("sgd", 0.1), "epochs": 5}
    for given in (
        tstar.recommend(net, data, batch_size=32, **how),
        tstar.recommend(net, loader, **how),
    ):
        assert (given.training.steps, given.training.batch_size) == (20, 32)
    with pytest.raises(TstarError, match="samples"):
        tstar.recommend(net, **how)


class Counted:
    """Batches of a data set, of which only the loader's length tells how many there are."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter([[0, 1]] * self.count)

    def __len__(self):
        return self.count


@pytest.mark.parametrize(
    ("made", "batches"),
    [
        ({"batch_size": 60, "drop_last": True}, 1),
        ({"batch_size": 10, "sampler": RandomSampler(range(100), num_samples=4000)}, 400),
        ({"batch_size": 10, "sampler": SubsetRandomSampler(range(20))}, 2),
        ({"batch_size": 10, "sampler": DistributedSampler(range(100), 5, 0)}, 2),
        ({"batch_sampler": BatchSampler(range(100), 10, False)}, 10),
        ({"batch_sampler": Counted(7)}, 7),
    ],
    ids=["drop_last", "oversampled", "subset", "distributed", "batch sampler", "own batch sampler"],
)
def test_an_epoch_has_as_many_steps_as_the_loader_has_batches(made, batches):
    loader = DataLoader(TensorDataset(torch.rand(100, 12), torch.arange(100) % 10), **made)
    assert len([*loader]) == batches
    how = {"optimizer": ("sgd", 0.1), "epochs": 3}
    assert tstar.recommend(model(), loader, **how).training.steps == 3 * batches


def test_a_batch_size_beside_the_loaders_is_that_of_a_step():
    """As with accumulated gradients or several processes."""
    data = TensorDataset(torch.rand(100, 12), torch.arange(100) % 10)
    split = DistributedSampler(data, 2, 0)
    for loader in (DataLoader(data, batch_size=10), DataLoader(data, batch_size=10, sampler=split)):
        advice = tstar.recommend(model(), loader, optimizer=("sgd", 0.1), epochs=3, batch_size=20)
        assert (advice.training.steps, advice.training.batch_size) == (15, 20)


def test_a_loader_without_batches_counts_no_steps():
    loader = DataLoader(TensorDataset(torch.rand(9, 12), torch.arange(9)), 10, drop_last=True)
    with pytest.raises(TstarError, match="at least one batch per epoch, got none"):
        tstar.recommend(model(), loader, optimizer=("sgd", 0.1), epochs=3)


def test_a_head_without_bias_and_one_after_a_norm_are_told_now():
    bare = nn.Sequential(nn.Flatten(), nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 10, bias=False))
    assert ("note", "no-bias") in codes(tstar.recommend(bare))
    normed = nn.Sequential(nn.Linear(12, 64), nn.BatchNorm1d(64), nn.Dropout(), nn.Linear(64, 10))
    advice = tstar.recommend(normed)
    assert ("note", "already-normed") in codes(advice)
    assert advice.norm is None
    tempered = tstar.temper(normed, advice)
    assert [type(m).__name__ for m in tempered.modules()].count("BatchNorm1d") == 1
    assert "without a new norm" in str(advice)
    assert tstar.recommend(model()).norm == "batch"  # a ReLU lies between


def test_levit_gets_no_second_norm():
    timm = pytest.importorskip("timm")
    levit = timm.create_model("levit_128s", num_classes=10)
    assert tstar.recommend(levit, head="head.linear").norm is None
    dense = timm.create_model("densenet121", num_classes=10)
    assert tstar.recommend(dense).norm == "batch"  # an activation and pooling lie between


def test_leave_it_is_advice_that_temper_follows():
    net = model()
    advice = tstar.recommend(net, norm=None)
    assert advice.leave
    assert advice.temperature == 1
    assert str(advice).startswith("Leave the model as it is")
    assert ("caution", "no-norm") in codes(advice)
    assert tstar.temper(net, advice) is net


def test_what_else_an_advice_can_ask_for():
    advice = dataclasses.replace(tstar.recommend(model()), lr_factor=0.5, backbone=2.0)
    assert "multiply the learning rate by 0.5" in advice.describe().verdict
    assert tstar.temper(model(), advice)[4].backbone.item() == 2.0
    assert {"norm", "backbone", "lr_factor", "weight_decay_factor", "leave", "expectation"} <= {
        *advice.to_dict()
    }


def test_to_dict_is_strict_json():

    for advice in (tstar.recommend(model()), tstar.explain(10**300, 10, variant="cn")):
        json.dumps(advice.to_dict(), allow_nan=False)


class Ending(nn.Module):
    """A head of 50 outputs, and what a function makes of them; ``untraceable`` only a run shows what."""

    def __init__(self, end, untraceable=False):
        super().__init__()
        self.body, self.fc, self.end, self.untraceable = nn.Linear(20, 8), nn.Linear(8, 50), end, untraceable  # fmt: skip
        self.scale = nn.Parameter(torch.tensor(4.0))

    def forward(self, x):
        h = self.body(x)
        if self.untraceable and h.sum() > 1e9:
            h = -h
        return self.end(self, self.fc(h))


@pytest.mark.parametrize("untraceable", [False, True])
@pytest.mark.parametrize(
    ("end", "codes"),
    [
        (lambda model, z: z / 4, {"own-scale"}),
        (lambda model, z: model.scale * z, {"own-scale"}),
        (lambda model, z: z.view(-1, 10, 5), {"reshaped"}),
        (lambda model, z: z.reshape(-1, 10, 5) / model.scale, {"own-scale", "reshaped"}),
        (lambda model, z: z if model.training else z / 4, set()),
        (lambda model, z: z.view(-1, 50), set()),
        (lambda model, z: z.view(-1, 2, 25).reshape(-1, 50), set()),
        (lambda model, z: z + (1 - (model.scale > 0).float()) * -1e9, set()),
        (lambda model, z: z.masked_fill(torch.arange(50) > 40, -1e9), set()),
        (lambda model, z: z.log_softmax(-1), set()),
        (lambda model, z: {"logits": z, "loss": z.sum() / 4}, set()),
    ],
)
def test_logits_that_the_model_scales_or_reshapes_itself(end, codes, untraceable):
    how = {"optimizer": ("sgd", 0.1), "steps": 300, "batch_size": 32}
    model = Ending(end, untraceable)
    asked = [tstar.recommend(model, **how), tstar.recommend(model, **how, head="fc")]
    asked.append(tstar.recommend(model, **how, example_input=torch.randn(8, 20)))
    for advice in asked:
        assert {n.code for n in advice.warnings} == codes
    told = tstar.recommend(model, **how, num_classes=10)
    assert {n.code for n in told.warnings} == codes - {"reshaped"}
