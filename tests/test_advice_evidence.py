"""What the measured trainings say to a model: a recipe, an expectation, or to leave it as it is."""

import dataclasses
import json

import pytest
import torch
from torch import nn

import tstar
from tests.test_advice import codes, model
from tstar import TstarError
from tstar.formula import similar
from tstar.formula.training import Training


def stored(
    monkeypatch,
    recipe="bn",
    gain=2.0,
    travel=0.0,
    norms="batch-norms",
    how=None,
    scenario="scratch",
):
    """As if the atlas had thirty trainings like the one below, with this gain."""
    mine = similar.coordinates(how or HOW, 64, 10, None)
    place = {**mine, "travel": mine["travel"] + travel}
    gains = dict.fromkeys(("bn", "faster"), gain)
    row = {"optimizer": "sgd", "norms": norms, "coordinates": place, "gains": gains, "keys": ["a"]}
    choice = {
        "norms": "batch-norms",
        "optimizer": "sgd",
        "scenario": scenario,
        "tuned": False,
        "recipe": recipe,
        "gain": gain,
        "low": 1.0,
        "high": 3.0,
        "trainings": 30,
    }
    known = {
        "rows": [row] * 30,
        "scales": dict.fromkeys(mine, 1.0),
        "noise": 1.0,
        "widening": 1.0,
    }
    told = {**choice, "tuned": True, "recipe": "bn", "gain": gain / 2}
    halved = {**row, "gains": {"bn": gain / 2}}
    content = {**known, "choices": [choice, told], "tuned": {**known, "rows": [halved] * 30}}
    monkeypatch.setattr(similar, "stored", lambda: content)


HOW = Training("sgd", 0.1, 1000, 0.9, batch_size=64)


def test_the_evidence_decides_and_is_told(monkeypatch):
    stored(monkeypatch)
    net = model()
    advice = tstar.recommend(net, optimizer=HOW)
    assert not advice.leave
    assert advice.temperature == tstar.temperature(64, 10, optimizer=HOW)
    assert (advice.evidence.median, advice.evidence.helped) == (2.0, similar.NEIGHBORS)
    assert "median +2.0 points over the plain model" in str(advice)
    assert ("note", "gain") in codes(advice)
    assert json.loads(json.dumps(advice.to_dict()))["evidence"]["rows"][0]["keys"] == ["a"]


def test_a_loader_tells_samples_and_batch_size(monkeypatch):
    stored(monkeypatch)
    data = torch.utils.data.TensorDataset(torch.rand(100, 12), torch.arange(100) % 10)
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    told = {"optimizer": ("sgd", 0.1), "steps": 1000}
    asked = []
    monkeypatch.setattr(
        similar, "nearest", lambda *given: asked.append(given[3]) or similar.NOTHING
    )
    for given in (loader, data):
        advice = tstar.recommend(model(), given, **told)
        assert advice.training.batch_size == (32 if given is loader else None)
    tstar.recommend(model(), samples=100, **told)
    tstar.recommend(model(), data, samples=90, **told)  # what is said counts more
    tstar.explain(64, 10, samples=100, **told)
    assert asked == [100, 100, 100, 90, 100]
    for ask in (lambda **n: tstar.recommend(model(), **n), lambda **n: tstar.explain(64, 10, **n)):
        with pytest.raises(TstarError, match="samples must be a whole number"):
            ask(samples=0, **told)


def test_leave_it_is_an_answer(monkeypatch):
    stored(monkeypatch, recipe="leave", gain=0.0)
    net = model()
    advice = tstar.recommend(net, optimizer=HOW)
    assert advice.leave
    assert (advice.temperature, advice.norm, advice.lr_factor) == (1.0, None, 1.0)
    assert str(advice).startswith("Leave the model as it is")
    assert ("note", "leave") in codes(advice)
    assert advice.evidence.median == 0.0  # of BN and T, which is why
    same = tstar.temper(net, advice)
    assert str(same) == str(net)
    assert all(torch.equal(a, b) for a, b in zip(same.parameters(), net.parameters(), strict=True))


def test_a_higher_rate_comes_with_its_own_temperature(monkeypatch):
    stored(monkeypatch, recipe="faster")
    advice = tstar.recommend(model(), optimizer=HOW)
    assert advice.lr_factor == 3
    faster = dataclasses.replace(HOW, lr=0.3)
    assert advice.temperature == pytest.approx(tstar.temperature(64, 10, optimizer=faster))
    assert "multiply the learning rate by 3" in str(advice)


def test_a_tuned_rate_stays_and_the_gain_is_over_the_tuned_model(monkeypatch):
    stored(monkeypatch, recipe="faster")
    advice = tstar.recommend(model(), optimizer=HOW, tuned=True)
    assert (advice.leave, advice.lr_factor, advice.evidence.median) == (False, 1.0, 1.0)
    assert advice.temperature == pytest.approx(tstar.temperature(64, 10, optimizer=HOW))
    assert "Over all 30 trainings at a tuned rate with SGD it gained +1.0 points" in str(advice)
    assert advice.to_dict()["training"]["tuned"] is True
    untuned = tstar.recommend(model(), optimizer=HOW)
    assert "pass tuned=True" in str(untuned)
    assert "pass tuned=True" not in str(advice)
    with pytest.raises(TstarError, match="tuned must be True or False, got 'yes'"):
        tstar.recommend(model(), optimizer=HOW, tuned="yes")


def test_fine_tuning_has_trainings_and_a_recipe_of_its_own(monkeypatch):
    stored(monkeypatch, recipe="faster")
    net = model()
    advice = tstar.recommend(net, optimizer=HOW, scenario="finetune")
    assert advice.leave  # no fine-tuning is among those
    for parameter in net[:4].parameters():
        parameter.requires_grad_(False)
    probe = tstar.recommend(net, optimizer=HOW, scenario="finetune")
    assert (probe.variant, probe.lr_factor) == ("speed", 3.0)  # a linear probe is no fine-tuning
    stored(monkeypatch, norms=similar.PRETRAINED, scenario="finetune")
    tuned = tstar.recommend(model(), optimizer=HOW, scenario="finetune")
    assert (tuned.leave, tuned.lr_factor, tuned.norm) == (False, 1.0, "batch")
    assert "Over all 30 fine-tunings with SGD" in str(tuned)
    assert tstar.recommend(model(), optimizer=HOW).leave  # and none from scratch among these


def test_far_from_everything_nothing_is_advised(monkeypatch):
    stored(monkeypatch, travel=10.0)
    advice = tstar.recommend(model(), optimizer=HOW)
    assert advice.leave
    assert ("caution", "far") in codes(advice)


def test_a_variant_of_the_paper_is_followed_whatever_the_evidence_says(monkeypatch):
    stored(monkeypatch, recipe="leave")
    advice = tstar.recommend(model(), optimizer=HOW, variant="cn")
    assert not advice.leave
    assert advice.evidence is None


def test_far_away_every_surface_leaves_the_model(monkeypatch):
    stored(monkeypatch, travel=10.0)
    advice, explained = (
        tstar.recommend(model(), optimizer=HOW),
        tstar.explain(64, 10, optimizer=HOW),
    )
    assert explained.leave
    assert tstar.temperature(64, 10, optimizer=HOW) == float(explained) == float(advice) == 1.0
    for text in (str(advice), str(explained)):
        assert text.startswith("Leave the model as it is")
        assert f"The law would give T = {explained.computed:.3g}; the paper's formula" in text
        assert "times the rate" not in text
    assert advice.expectation == ""  # of trainings that are not like it
    assert not tstar.explain(64, 10, optimizer=HOW, variant="cn").leave


def test_optimizers_that_were_not_measured_leave_the_model():
    for told in (
        tstar.recommend(model(), optimizer="lion"),
        tstar.explain(64, 10, optimizer="lion"),
    ):
        assert (told.leave, told.temperature) == (True, 1.0)


@pytest.mark.parametrize(
    ("lr", "leave", "factor"),
    [(0.1, True, 1), (0.03, False, 1), (0.011, False, 1), (0.01, False, 3)],
)
def test_no_transformer_is_sent_to_a_rate_that_failed(monkeypatch, lr, leave, factor):
    net = nn.Sequential(nn.MultiheadAttention(16, 2), nn.Linear(64, 10))
    how = dataclasses.replace(HOW, lr=lr)
    stored(monkeypatch, recipe="faster", how=how)
    advice = tstar.recommend(net, optimizer=how, head="1")
    assert (advice.leave, advice.lr_factor) == (leave, factor)
    assert (("warning", "transformer-lr") in codes(advice)) == leave
    # What all trainings gained is said of the recipe that is advised, and of no other.
    assert (("note", "gain") in codes(advice)) == (factor == 3)
    assert (("note", "rate-kept") in codes(advice)) == (not leave and factor == 1)


def test_adapters_on_a_frozen_network_are_fine_tuning(monkeypatch):
    net = model()
    net.insert(0, nn.Linear(1000, 1000).requires_grad_(False))
    stored(monkeypatch)
    for told in (HOW, dataclasses.replace(HOW, scenario="finetune")):
        advice = tstar.recommend(net, optimizer=told)
        assert advice.training.scenario == "finetune"
        assert (("note", "frozen") in codes(advice)) == (told is HOW)
    assert tstar.recommend(model(), optimizer=HOW).training.scenario is None


def test_a_linear_probe_is_told_by_what_the_optimizer_holds():
    """As by what is frozen; an optimizer of a copy, or of another part, says nothing."""
    told = {"steps": 1000, "batch_size": 32, "samples": 5000}

    def advised(net, trained):
        return tstar.recommend(net, optimizer=torch.optim.SGD(trained, lr=0.1), **told)

    frozen, net = model(), model()
    frozen.requires_grad_(False)[-1].requires_grad_(True)
    expected = advised(frozen, frozen[-1].parameters())
    found = advised(net, net[-1].parameters())
    assert found.evidence == expected.evidence
    assert (float(found), found.leave) == (float(expected), expected.leave)
    assert codes(found) - codes(expected) == {("note", "probe")}
    whole = advised(net, net.parameters())
    assert whole.evidence != expected.evidence
    for other in (model().parameters(), net[1].parameters()):
        again = advised(net, other)
        assert again.evidence == whole.evidence
        assert codes(again) == codes(whole)


def test_a_backbone_that_is_not_trained_has_no_speed(monkeypatch):
    stored(monkeypatch)
    net, x = model(), torch.randn(32, 12)
    net.requires_grad_(False)[-1].requires_grad_(True)
    advice = tstar.recommend(net, optimizer=HOW, example_input=x)
    assert not advice.leave
    assert ("caution", "backbone-speed") not in codes(advice)


def test_json_has_the_rate_that_was_told_and_the_advised_one(monkeypatch):
    stored(monkeypatch, recipe="faster")
    advice = tstar.recommend(model(), optimizer=HOW)
    told = advice.to_dict()
    assert (told["training"]["lr"], told["advised_lr"], told["lr_factor"]) == (0.1, 0.3, 3)  # fmt: skip


def test_what_temper_would_refuse_is_not_advised():
    frozen = model()
    frozen.requires_grad_(False)
    with pytest.raises(TstarError, match="trainable"):
        tstar.recommend(frozen, optimizer=HOW)


def test_t_for_a_higher_rate_warns_where_the_rate_was_not_raised(monkeypatch):
    stored(monkeypatch, recipe="faster")
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    advice = tstar.recommend(net, optimizer=optimizer, steps=1000, batch_size=64)
    with pytest.warns(tstar.TstarWarning, match=r"rate of 0\.3, and T is too high for 0\.1"):
        tstar.temper(net, advice)
    plain = tstar.temper(model(), 1.0)
    with pytest.warns(tstar.TstarWarning, match=r"multiply the rate by advice\.lr_factor \(3\)"):
        tstar.param_groups(plain, dataclasses.replace(advice, head=None), lr=0.1)


def test_a_rate_that_was_raised_raises_no_warning(monkeypatch, recwarn):
    stored(monkeypatch, recipe="faster")
    advice = tstar.recommend(model(), optimizer=("sgd", 0.1), steps=1000, batch_size=64)
    plain = tstar.temper(model(), 1.0)
    tstar.param_groups(plain, dataclasses.replace(advice, head=None), lr=0.1 * advice.lr_factor)
    assert [str(w.message) for w in recwarn if "rate" in str(w.message)] == []


def test_where_similar_trainings_gained_nothing_every_surface_leaves_the_model(monkeypatch):
    stored(monkeypatch, gain=-0.1)
    advice, explained = (
        tstar.recommend(model(), optimizer=HOW),
        tstar.explain(64, 10, optimizer=HOW),
    )
    assert advice.leave
    assert tstar.temperature(64, 10, optimizer=HOW) == float(explained) == float(advice) == 1.0
    assert ("note", "no-gain") in codes(advice)
    assert "median -0.1 points" in str(advice)  # which is why
