"""Methods by name, and their options."""

import pytest

from tstar import TstarError, methods
from tstar.methods.label_smoothing import Smoothed
from tstar.methods.searching import runs_of

TABLE_1 = [
    "default",
    "sqrt-m",
    "insert-ln",
    "label-smoothing",
    "relaxed-softmax",
    "temperature-check",
    "temperature-scaling",
    "kd",
    "meta-kd",
    "ctkd",
    "logit-standardization",
    "heated-up",
    "adacos-fixed",
    "normface-bound",
    "learned-temperature",
    "ours-base",
    "ours-csg",
    "ours-cn",
    "ours-csgcn",
]


def test_every_row_is_there_under_its_name():
    assert set(TABLE_1) <= set(methods.list())
    for name in methods.list():
        assert methods.get(name).name == name
        assert methods.get(name).needs <= {"csg", "teacher", "validation"}


def test_options_by_keyword_and_in_the_name():
    assert methods.get("kd", tau=2.0) == methods.get("kd:tau=2.0")
    assert methods.get("insert-ln:affine=false") == methods.get("insert-ln", affine=False)
    assert methods.get("ours-cn:schedule=cosine:start=2").start == 2
    smoothed = methods.get("temperature-check:points=9+label-smoothing")
    assert isinstance(smoothed, Smoothed)
    assert runs_of(smoothed) == 9
    assert smoothed.epsilon == 0.1
    assert smoothed.at(2.0).method.temperature == 2.0


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("insert-nl", {}, "insert-ln"),
        ("kd", {"tua": 2}, "tau"),
        ("default", {"T": 2}, "no options"),
        ("ours-cn", {"variant": "csg"}, "option of method"),
        ("kd", {"tau": -1}, "positive"),
        ("kd", {"tau": "4"}, "tau must be a number"),
        ("insert-ln", {"affine": "no"}, "true or false"),
        ("label-smoothing", {"epsilon": 1.0}, "epsilon < 1"),
        ("ours-cn:schedule", {}, "key=value"),
        ("ours-cn", {"schedule": "cosinus"}, "cosine"),
        ("temperature-check", {"points": 1}, "points"),
        ("temperature-check", {"lowest": 10.0, "highest": 1.0}, "lowest < highest"),
        ("temperature-check", {"sampler": "bayes"}, "sampler"),
        ("learned-temperature", {"start": 200.0}, "highest"),
        ("normface-bound", {"probability": 1.0}, "probability"),
        ("default+label-smoothing+label-smoothing", {}, "must end"),
    ],
)
def test_bad_names_and_options_are_refused_with_a_hint(name, options, match):
    with pytest.raises(TstarError, match=match):
        methods.get(name, **options)
