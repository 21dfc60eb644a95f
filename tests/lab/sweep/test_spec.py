"""The key of a run: pinned, so that a store stays valid."""

from dataclasses import replace

import pytest

from tstar.errors import TstarError
from tstar.lab.sweep import spec as specs
from tstar.lab.sweep.spec import FIELDS, Spec
from tstar.training import described

TINY = Spec(dataset="digits", model="mlp", temperature=1.0, norm="batch")
OTHER = {"method": "ours-cn", "temperature": None, "norm": None}
FINE = {"scenario": "finetune", "weights": "default"}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "bebbeb8929b79146d526c9d2"),
        (OTHER | {"steps": 100, "optimizer": "adamw", "lr": 0.001}, "b8314f6f83d92362994fd5b7"),
        (
            {"norm": "none", "depth": 2, "classes": 5, "samples": 100, "data_checksum": "ab"},
            "07f1242947e76fb9a356e1f1",
        ),
    ],
)
def test_keys_stay(changes, key):
    spec = replace(TINY, **changes)
    assert spec.key == key
    assert Spec(**spec.to_dict()) == spec


def test_a_field_that_is_added_later_changes_no_key(monkeypatch):
    key, known = TINY.key, TINY.to_dict()
    monkeypatch.setitem(FIELDS, "later", described("later", 1.0))
    monkeypatch.setattr(Spec, "to_dict", lambda self: known | {"later": 1.0})
    assert replace(TINY).key == key
    monkeypatch.setattr(Spec, "to_dict", lambda self: known | {"later": 2.0})
    assert replace(TINY).key != key


def another(name):
    """Another value of a field."""
    item = FIELDS[name]
    value = {"bool": not item.default, "int": 5, "float": 0.25, "str": "./mine.py:part"}
    choices = [one for one in item.metadata.get("choices") or () if one != item.default]
    return choices[0] if choices else value[specs.kind_of(item)]


@pytest.mark.parametrize("name", [n for n in FIELDS if n not in ("beta1", "beta2", "norm")])
def test_every_field_is_a_part_of_the_key(name):
    changes = {name: another(name)}
    changes |= {"scenario": FINE, "weights": FINE, "method": OTHER}.get(name, {})
    assert replace(TINY, **changes).key != TINY.key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_init": "papr"}, "Unknown head_init 'papr'; did you mean 'paper'"),
        ({"csg": 0}, "csg must be positive"),
        ({"seed": -1}, "seed must be a whole number of at least 0|from 0 to"),
        ({"lr": None}, "lr must be a number, got lr=None"),
        ({"scenario": "finetune"}, "weights must be given"),
    ],
)
def test_wrong_values_are_refused(changes, message):
    with pytest.raises(TstarError, match=message):
        replace(TINY, **changes)


def test_a_damaged_cell_is_shown_as_it_is():
    row = {"curves": "[1, 2", "extra": '{"a": 1}', "versions": None, "dataset": "{"}
    assert specs.opened(row) == row | {"extra": {"a": 1}}


def test_what_an_optimizer_does_not_read_is_no_part_of_the_key():
    adam = replace(TINY, optimizer="adam")
    for field, value in (("momentum", 0.5), ("nesterov", True)):
        assert replace(adam, **{field: value}).key == adam.key
    assert replace(adam, beta2=0.95).key != adam.key
    assert replace(TINY, beta2=0.95).key == TINY.key
    steps = replace(TINY, steps=10)
    assert replace(steps, epochs=3).key == steps.key
