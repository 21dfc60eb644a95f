"""The key of a run: pinned, so that stores written before stay valid."""

from dataclasses import replace

import pytest

from tstar.lab.sweep.spec import Spec
from tstar.lab.training.config import Config

TINY = Spec("digits", "mlp", temperature=1.0, norm="batch")


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        (TINY, "16d7fc857c9247a9b0c0c3cc"),
        (
            Spec(
                "cifar10",
                "resnet10",
                seed=3,
                size=32,
                num_features=64,
                method="ours-cn",
                config=Config(steps=100, optimizer="adamw", lr=0.001),
            ),
            "09beb3bb84b7f929aa27164d",
        ),
        (
            Spec(
                "digits",
                "vgg9",
                temperature=4.0,
                norm="none",
                backbone="matched",
                depth=2,
                classes=5,
                train_samples=100,
                label_noise=0.1,
                data_seed=1,
                data_checksum="ab",
            ),
            "31c2f214db35f6e117316eb5",
        ),
    ],
)
def test_the_keys_of_older_runs_stay(spec, key):
    assert spec.key == key
    assert Spec.from_dict(spec.to_dict()).key == key
    assert Spec.from_dict(spec.to_dict() | {"mixup": 0.0}).key == key  # a field that is no more


@pytest.mark.parametrize(
    ("field", "value"),
    [("backbone", "matched"), ("trunk_features", 8), ("depth", 3), ("classes", 4),
     ("train_samples", 100), ("label_noise", 0.1), ("data_seed", 3), ("source", "a"), ("csg", 2.0)],
)  # fmt: skip
def test_later_fields_change_the_key(field, value):
    assert replace(TINY, **{field: value}).key != TINY.key


@pytest.mark.parametrize(
    "changed",
    [
        *({"clip_norm": 1.0}, {"nesterov": True}, {"momentum": 0.5}),
        *({"loss": "./mine.py:loss"}, {"metric": "./mine.py:score"}),
    ],
)
def test_a_new_field_is_part_of_the_key_off_its_default(changed):
    assert replace(TINY, config=replace(TINY.config, **changed)).key != TINY.key


def test_what_an_optimizer_does_not_read_is_no_part_of_the_key():
    adam = replace(TINY, config=Config(optimizer="adam"))
    for field, value in (("momentum", 0.5), ("nesterov", True)):
        assert replace(adam, config=replace(adam.config, **{field: value})).key == adam.key
    assert replace(adam, config=replace(adam.config, beta2=0.95)).key != adam.key
    assert replace(TINY, config=replace(TINY.config, beta2=0.95)).key == TINY.key
