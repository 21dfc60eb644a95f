"""recommend: from a row to numbers, what is printed, kept and applied."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler as schedulers

import tstar
from tests.cases import random_case
from tstar import TstarError, TstarWarning
from tstar.advice import Recommendation, advise, recommend
from tstar.case import read_case
from tstar.law import law_temperature
from tstar.recipes import Gain, Row, find_row, rows
from tstar.training import Training

GAIN = Gain(12, 0.5, 0.9, -1.0, 3.0, 0.4, 0.1)
LAW = Row("law", {}, "norm, T, rate", norm="batch", temperature="law", rate=3.0, native=GAIN)
RATE = Row("rate", {}, "rate", rate=3.0, native=GAIN)
PAPER = Row("paper", {}, "norm, T*", norm="batch", temperature="cn", native=GAIN)
LEAVE = Row("leave", {}, "leave the model as it is.")
UNKNOWN = replace(LEAVE, name="unknown", known=False)
EVERY = (LAW, RATE, PAPER, LEAVE, UNKNOWN)


def network(M=128, K=10):
    layers = [nn.Conv2d(3, M, 3), nn.BatchNorm2d(M), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(M, K))


HOW = dict(optimizer="sgd", lr=0.1, steps=1000, batch_size=128, samples=5000)


def advised(row, net=None, **known):
    """The advice of a row for a network."""
    case, heads = read_case(net or network(), **{**HOW, **known})
    return advise(case, row, heads=tuple(head.path.removesuffix(".layer") for head in heads))


# -- from a row to numbers -------------------------------------------------------------------------
def test_the_numbers_of_each_kind_of_row():
    law = advised(LAW)
    assert (law.norm, law.lr) == ("batch", 0.3)
    how = Training("sgd", lr=0.3, steps=1000, batch_size=128, weight_decay=5e-4)
    assert law.temperature == law_temperature(128, 10, how)
    assert (advised(RATE).lr, advised(RATE).temperature, advised(RATE).norm) == (0.3, 1.0, None)
    assert advised(PAPER).temperature == tstar.temperature(128, 10)
    assert advised(LEAVE).leave
    assert not advised(LEAVE).surgery


def follow(advice):
    """The case after the advice was applied."""
    case = replace(advice.case, training=replace(advice.training, lr=advice.lr))
    T = advice.temperature if advice.surgery else case.temperature
    return replace(case, norm=advice.norm, temperature=T)


@pytest.mark.parametrize("seed", range(0, 3000, 100))
def test_following_the_advice_once_is_enough(seed):
    """A fixed point, of the table and of every kind of row; nothing is lowered."""
    for number in range(seed, seed + 100):
        case = random_case(number)
        for row in (find_row(case), *EVERY):
            if row.temperature == "law" and case.training.family == "other":
                continue
            first = advise(case, row, heads=("fc",))
            again = advise(follow(first), row, heads=("fc",))
            assert again.leave, (number, row.name)
            assert again.temperature == first.temperature
            assert first.lr >= case.training.lr
            assert first.lr <= max(case.training.lr, (row.rate or 1) * case.usual_lr * 1.001)
        assert find_row(follow(advise(case, find_row(case), heads=("fc",)))) is find_row(case)


def test_saying_more_never_turns_the_advice_round():
    for number in range(2000):
        case = random_case(number)
        row = find_row(case)
        tuned = find_row(replace(case, training=replace(case.training, tuned=True)))
        assert tuned.rate is None, "the rate of a tuned training stays"
        assert not tuned.surgery or row.surgery or not row.known


def test_a_row_that_changes_something_is_printed_as_a_change():
    changed = {row.name: False for row in rows()}
    for case in map(random_case, range(3000)):
        row = find_row(case)
        advice = advise(case, row, heads=("fc",))
        changed[row.name] |= not advice.leave
        assert not advice.surgery or row.surgery
    assert changed == {row.name: row.changes for row in rows()}


# -- recommend -------------------------------------------------------------------------------------
def data(size=8, count=100):
    return torch.rand(count, 3, size, size), torch.arange(count) % 10


def test_a_loader_is_read_once_and_csg_is_not_measured():
    class Counted(torch.utils.data.Dataset):
        reads, targets = 0, [i % 10 for i in range(500)]

        def __len__(self):
            return 500

        def __getitem__(self, i):
            Counted.reads += 1
            return torch.rand(3, 8, 8), self.targets[i]

    loader = torch.utils.data.DataLoader(Counted(), batch_size=50)
    advice = recommend(network(), loader, optimizer="sgd", epochs=3)
    assert advice.training.steps == 30
    assert Counted.reads <= 50


def test_the_model_and_the_random_numbers_stay():
    net = network().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    state = torch.random.get_rng_state()
    recommend(net, **HOW)
    assert net.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_what_was_not_measured_is_named_first():
    soft = nn.KLDivLoss(reduction="batchmean")
    assert "soft targets" in str(recommend(network(), loss=soft, **HOW)).splitlines()[2]
    more = (torch.rand(9, 3, 8, 8), torch.arange(9))
    assert "the output layer 10" in str(recommend(network(), more, **HOW)).splitlines()[2]
    dense = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 10, 1))
    assert "each pixel or token" in advised(LAW, dense).details()
    two = nn.ModuleDict({"a": nn.Linear(8, 10), "b": nn.Linear(8, 2)})
    assert "[10, 2] classes" in recommend(two, head=["a", "b"], **HOW).details()
    smooth = partial(F.cross_entropy, label_smoothing=0.1)
    assert recommend(network(), loss=smooth, **HOW).training.label_smoothing == 0.1
    assert "label smoothing" in str(advised(LAW, label_smoothing=0.1))


def test_a_loss_without_a_softmax_is_refused():
    with pytest.raises(TstarError, match="softmax"):
        recommend(network(), loss=nn.MSELoss())


def test_a_network_with_a_norm_of_its_own_there_is_no_case_of_a_row_that_inserts_one():
    """No measured network had one. A norm that temper put there is not the network's own."""
    net = network()
    own = nn.Sequential(*net[:-1], nn.BatchNorm1d(128), net[-1])
    assert recommend(net, **HOW).row.norm == "batch"
    assert recommend(own, **HOW).row.norm is None
    assert recommend(own, **HOW).leave
    assert recommend(tstar.temper(net, 4.0), **HOW).row.norm == "batch"


# -- print and keep --------------------------------------------------------------------------------
@pytest.mark.parametrize("row", [*EVERY, *rows()], ids=lambda row: row.name)
def test_four_lines_one_line_and_json(row, tmp_path):
    advice = advised(row)
    lines = str(advice).splitlines()
    assert [line.split(":")[0] for line in lines] == ["Do this", "Expect", "Main risk", "Check"]
    assert "\n" not in repr(advice)
    assert ("advice.apply" in lines[0]) is not advice.leave
    assert ("BatchNorm before" in lines[0]) is (advice.norm is not None)
    assert ("not known" in lines[1]) is not row.known
    assert row.do in advice.details()
    if row in rows():
        advice.save(tmp_path / "advice.json")
        assert Recommendation.load(tmp_path / "advice.json") == advice


def test_an_advice_that_is_no_advice_is_refused(tmp_path):
    path = tmp_path / "advice.json"
    advised(rows()[0]).save(path)
    text = path.read_text(encoding="utf-8")
    for wrong in (
        "{}",
        "[]",
        text.replace(rows()[0].name, "another"),
        text.replace('"lr"', '"rl"'),
        text.replace('"lr": 0.1', '"lr": "fast"'),
        text.replace('"tuned": false', '"tuned": "no"'),
        text.replace('"notes": []', '"notes": 5'),
        text.replace('"temperature": 1.0', '"temperature": "hot"'),
    ):
        assert text != wrong
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(TstarError):
            Recommendation.load(path)


def test_the_expectation_is_the_row_s():
    assert str(GAIN) in str(advised(LAW)).splitlines()[1]
    assert "set lr to 0.3 (in place of 0.1)" in str(advised(RATE))
    assert "set lr" not in str(advised(RATE, lr=0.3))


def test_no_gain_is_promised_where_nothing_changes():
    text = str(advised(RATE, lr=0.9))
    assert "Do this: nothing more;" in text
    assert "Expect: no change" in text
    assert "Expect: +0.5 points" in str(advised(RATE))


def test_a_far_rate_few_trainings_and_their_source_are_named():
    far = advised(replace(RATE, source="two studies"), lr=0.001).details()
    assert "300 times yours" in far
    assert "few measurements: two studies." in far
    many = advised(replace(RATE, native=replace(GAIN, n=90), source="two studies")).details()
    assert "times yours" not in many
    assert "few measurements" not in many
    assert "Measured on: two studies." in many


def test_confidence_is_a_risk_where_t_is_large():
    large, small = (replace(LAW, temperature=T, rate=None) for T in (20.0, 2.0))
    assert "calibrate afterwards" in advised(large).details()
    assert "calibrate" not in advised(small).details()


# -- apply -----------------------------------------------------------------------------------------
def test_apply_tempers_in_place_and_sets_the_rates_in_their_ratio():
    net = network()
    groups = [{"params": net[0].parameters(), "lr": 0.05}, {"params": net[-1].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=5e-4)
    advice = recommend_by(LAW, net, optimizer)
    assert advice.apply(net, optimizer) is net
    head = net.get_submodule("5")
    assert float(head.temperature) == pytest.approx(advice.temperature)
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    assert all(id(p) in held for p in head.parameters())
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.15, 0.3])


def recommend_by(row, net, optimizer, **known):
    return advised(row, net, optimizer=optimizer, lr=None, **known)


@pytest.mark.parametrize("row", [LAW, RATE, PAPER])
def test_applying_and_asking_again_says_that_all_is_done(row):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    for _ in range(2):  # a cell of a notebook runs twice
        net = recommend_by(row, net, optimizer).apply(net, optimizer)
        again = recommend_by(row, net, optimizer)
        assert again.leave
        assert str(again).startswith("Do this: nothing more")
        before = [{**group, "params": None} for group in optimizer.param_groups]
        assert again.apply(net, optimizer) is net
        assert before == [{**group, "params": None} for group in optimizer.param_groups]


def test_a_rate_is_set_to_the_last_digit():
    """Else asking again would say so little more."""
    net = network()
    rates = (n / 1000 for n in range(1, 300))
    lr = next(rate for rate in rates if rate * (0.3 / rate) < 0.3)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    recommend_by(RATE, net, optimizer).apply(net, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.3
    assert recommend_by(RATE, net, optimizer).leave


@pytest.mark.parametrize("norm", ["batch", None])
def test_a_tempered_head_gets_the_advised_t_and_norm(norm):
    net = tstar.temper(network(), 40.0, norm=norm)
    advice = advised(LAW, net)
    assert "already" not in str(advice)
    assert f"set T to {advice.temperature:.4g} (in place of 40)" in str(advice)
    advice.apply(net)
    (head,) = (m for m in net.modules() if hasattr(m, "set_temperature"))
    assert float(head.temperature) == pytest.approx(advice.temperature)
    assert isinstance(head.norm, nn.BatchNorm1d)


class Twins(nn.Module):
    """Two output layers on one body."""

    def __init__(self):
        super().__init__()
        self.body, self.one, self.two = nn.Linear(6, 64), nn.Linear(64, 10), nn.Linear(64, 10)

    def forward(self, x):
        h = self.body(x).relu()
        return self.one(h), self.two(h)


def test_an_advice_is_for_the_heads_that_it_names():
    net, how = Twins(), {"optimizer": "sgd", "steps": 5000}
    both = recommend(net, head=["one", "two"], lr=0.01, **how)
    both.apply(net)
    again = recommend(net, head=["one", "two"], lr=both.lr, **how)
    assert again.leave
    assert again.heads == both.heads == ("one", "two")
    for head in (net.one, net.two):
        head.set_temperature(40)
    recommend(net, head="two", lr=both.lr, **how).apply(net)
    assert float(net.one.temperature) == 40
    assert float(net.two.temperature) == pytest.approx(both.temperature)
    assert not recommend(net, head="one", lr=both.lr, **how).leave


def test_an_advice_that_cannot_be_applied_leaves_the_model_as_it_was():
    net = tstar.temper(network(), 40.0, norm=None)
    head, advice = net[-1], advised(LAW, net)
    with pytest.raises(TstarError, match="before it is wrapped"):
        advice.apply(torch.nn.DataParallel(net))
    assert net[-1] is head
    assert float(head.temperature) == 40


def test_without_an_optimizer_the_surgery_alone_is_done():
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    advice = replace(recommend_by(RATE, net, optimizer), live=True)
    with pytest.warns(TstarWarning, match=r"advice.apply\(model, optimizer\)"):
        advice.apply(net)
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert advised(LAW).apply(network())[-1].norm is not None


def test_an_advice_for_another_model_is_noticed():
    with pytest.warns(TstarWarning, match="M = 128, K = 10"):
        advised(LAW).apply(network(64, 5))


@pytest.mark.parametrize("row", [LAW, RATE])
@pytest.mark.parametrize("tempered", [False, True])
@pytest.mark.parametrize("wrong", ["another model's", "a name", "scheduler"])
def test_what_apply_refuses_stays_as_it_is(row, tempered, wrong):
    net = tstar.temper(network(), 2.0, norm=None) if tempered else network()
    advice = recommend_by(row, net, torch.optim.SGD(net.parameters(), lr=0.1))
    owner = network() if wrong == "another model's" else net
    optimizer = torch.optim.SGD(owner.parameters(), lr=0.1)
    given = ("sgd",) if wrong == "a name" else (optimizer, 5 if wrong == "scheduler" else None)
    before = str(net), [{**group} for group in optimizer.param_groups]
    with pytest.raises(TstarError, match=r"must (hold|be a)"):
        advice.apply(net, *given)
    assert before == (str(net), [{**group} for group in optimizer.param_groups])


def test_an_output_layer_with_a_rate_of_its_own_is_no_case_of_a_row_that_raises_the_rate():
    """As in fine-tuning, 1e-5 and 1e-3: no measured training had two."""
    net = network()
    body, head = [*net[:-1].parameters()], [*net[-1].parameters()]
    for rate, row in ((1e-3, "the rest"), (2e-5, "fine-tuned, Adam, convolutional")):
        groups = [{"params": body}, {"params": head, "lr": rate}]
        optimizer = torch.optim.AdamW(groups, lr=1e-5)
        assert recommend(net, optimizer=optimizer, scenario="finetune", steps=100).row.name == row


def test_a_wrapped_model_gets_rates_and_is_not_tempered():
    net = torch.nn.DataParallel(network())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert advised(RATE).apply(net, optimizer) is net
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.3)
    with pytest.raises(TstarError, match="before it is wrapped"):
        advised(LAW).apply(net, optimizer)


SCHEDULERS = {
    "one cycle": lambda o: schedulers.OneCycleLR(o, [g["lr"] for g in o.param_groups], 10),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 10),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda step: 1 - step / 10),
    "plateau": lambda o: schedulers.ReduceLROnPlateau(o, patience=1),
    "sequential": lambda o: schedulers.SequentialLR(
        o,
        [schedulers.LinearLR(o, 0.5, total_iters=3), schedulers.CosineAnnealingLR(o, 7)],
        milestones=[3],
    ),
    "timm": lambda o: pytest.importorskip("timm.scheduler").CosineLRScheduler(
        o, t_initial=10, warmup_t=3, warmup_lr_init=0.0
    ),
    "transformers": lambda o: pytest.importorskip("transformers").get_cosine_schedule_with_warmup(
        o, 3, 9
    ),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_goes_on_from_the_new_rate(name):
    """Each rate of the whole schedule is a multiple of that of a twin without the advice."""

    def rates(apply):
        net = network()
        groups = [{"params": net[0].parameters(), "lr": 0.05}, {"params": net[1:].parameters()}]
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        scheduler = SCHEDULERS[name](optimizer)
        if apply:
            advised(RATE, net).apply(net, optimizer, scheduler)
        rates = []
        for epoch in range(1, 10):
            held = [(g["lr"], {*map(id, g["params"])}) for g in optimizer.param_groups]
            layers = (net[0], net[1], net[-1])
            rates.append([next(lr for lr, ids in held if id(m.weight) in ids) for m in layers])
            optimizer.step()
            scheduler.step(*([epoch] if name in ("plateau", "timm") else []))
        return rates

    wanted = [[3 * rate for rate in epoch] for epoch in rates(False)]
    assert rates(True)[1:] == [pytest.approx(epoch) for epoch in wanted[1:]]
