"""An advice as a record: its JSON, and the way back."""

import dataclasses
import json

import pytest
from torch import nn

import tstar
from tstar import TstarError


def model(M=64, K=10):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(12, M), nn.BatchNorm1d(M), nn.ReLU(), nn.Linear(M, K)
    )


HOW = {"optimizer": ("sgd", 0.1), "batch_size": 32}
ADVICES = {
    "temper": lambda: tstar.recommend(model(), steps=300, scheduler="linear", csg=3.0, **HOW),
    "leave": lambda: tstar.recommend(model(), steps=200_000, **HOW),
    "paper": lambda: tstar.recommend(model(), label_smoothing=0.1),
    "own": lambda: tstar.recommend(
        model(), coefficients=tstar.Coefficients("cn", alpha=1.0, beta=0.0)
    ),
    "changed": lambda: dataclasses.replace(
        tstar.recommend(model()), lr_factor=0.5, backbone=2.0, weight_decay_factor=3.0
    ),
}


@pytest.mark.parametrize("make", ADVICES.values(), ids=[*ADVICES])
def test_an_advice_comes_back_from_json(make):
    advice = make()
    told = json.loads(json.dumps(advice.to_dict()))
    again = tstar.Recommendation.from_dict(told)
    lost = {"head", "explanation", "evidence", "optimizer"}
    for each in dataclasses.fields(advice):
        if each.name not in lost:
            assert getattr(again, each.name) == getattr(advice, each.name), each.name
    for name in ("training", "reason", "variant"):
        assert getattr(again, name) == getattr(advice, name)
    assert again.head.path == advice.head.path
    assert again.explanation.coefficients == advice.explanation.coefficients
    assert str(again).splitlines()[0] == told["verdict"]
    for made in (advice, again):
        done = tstar.temper(model(), made)
        assert [type(m) for m in done.modules()] == [
            type(m) for m in tstar.temper(model(), advice).modules()
        ]
    both = tstar.Recommendation.from_dict(json.loads(json.dumps(again.to_dict())))
    assert dataclasses.replace(both, head=again.head) == again


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"leave": "no"}, "leave must be True or False"),
        ({"temperature": "5"}, "temperature must be a number"),
        ({"temperature": -1}, "temperature must be positive"),
        ({"norm": "bacth"}, "Unknown norm 'bacth'"),
        ({"norm": ["batch"]}, "Unknown norm"),
        ({"backbone": "matched"}, "backbone must be a number"),
        ({"lr_factor": 0}, "lr_factor must be positive"),
        ({"head": 4}, "head must be a string"),
        ({"num_classes": 1}, "num_classes must be a whole number"),
        ({"training": None}, "The training of an advice must be a table"),
        ({"training": {"optimiser": "sgd"}}, "Unknown field of the training of an advice"),
        ({"training": {"optimizer": 3}}, "optimizer must be a string"),
        ({"training": {"steps": 0}}, "steps must be"),
        ({"advised_lr": "fast"}, "lr must be a number"),
        ({"coefficients": ["cn"]}, "Unknown variant"),
        ({"own_coefficients": 3}, "own_coefficients must be a table"),
        ({"own_coefficients": {}}, "needs name, alpha, beta"),
        ({"notices": {}}, "notices must be a list"),
        ({"notices": [{"severity": "note"}]}, "A notice needs code, message"),
        ({"notices": [{"severity": [], "code": "a", "message": "b"}]}, "Unknown severity"),
        ({"temprature": 3}, "Unknown field of an advice 'temprature'; did you mean 'temperature'"),
    ],
)
def test_json_that_is_no_advice_is_refused(change, match):
    told = json.loads(json.dumps(tstar.recommend(model()).to_dict()))
    with pytest.raises(TstarError, match=match):
        tstar.Recommendation.from_dict({**told, **change})


def test_a_part_of_an_advice_or_its_bare_json_names_the_way():
    told = tstar.recommend(model()).to_dict()
    with pytest.raises(TstarError, match=r"An advice needs temperature, head"):
        tstar.Recommendation.from_dict({"leave": True})
    with pytest.raises(TstarError, match="An advice must be a table"):
        tstar.Recommendation.from_dict("{}")
    with pytest.raises(TstarError, match=r"tstar\.Recommendation\.from_dict"):
        tstar.temper(model(), told)
    told["notices"] = [{"severity": "note", "code": "x", "message": "a\x1b[31mb"}]
    assert "\x1b" not in str(tstar.Recommendation.from_dict(told))
