"""From TOML to runs: the grid is the product, and errors name the table, the field, what is allowed."""

import re

import pytest

from tstar.errors import TstarError
from tstar.lab.sweep.study import load_study, parse_study

GOOD = """name = "s"

[training]
epochs = 3

[[grid]]
dataset = "digits"
model = ["resnet10", "vgg9"]
num_features = [16, 32]
norm = ["batch", "none"]
temperature = [1, 2.5]
seed = [0, 7]

[[grid]]
dataset = "digits"
model = "resnet10"
method = ["insert-ln", "kd"]
lr = [0.1, 0.01]

[options.kd]
tau = 2
"""


def test_the_grid_is_the_product():
    study = parse_study(GOOD)
    assert len(study) == 2 * 2 * 2 * 2 * 2 + 2 * 2
    fixed = {
        (s.model, s.num_features, s.norm, s.temperature, s.seed)
        for s in study.specs
        if s.method == "fixed"
    }
    assert fixed == {
        (m, w, n, T, seed)
        for m in ("resnet10", "vgg9")
        for w in (16, 32)
        for n in ("batch", "none")
        for T in (1.0, 2.5)
        for seed in (0, 7)
    }
    assert all(s.epochs == 3 for s in study.specs)
    assert {s.options for s in study.specs if s.method == "kd"} == {'{"tau": 2}'}
    assert {s.options for s in study.specs if s.method != "kd"} == {"{}"}


def test_keys_are_unique_and_depend_on_content_alone():
    study = parse_study(GOOD)
    keys = [s.key for s in study.specs]
    assert len(set(keys)) == len(keys)
    lines = GOOD.split("\n")
    swapped = [*lines[:6], *reversed(lines[6:12]), *lines[12:]]
    shuffled = "\n".join(swapped).replace('["resnet10", "vgg9"]', '["vgg9", "resnet10"]')
    assert {s.key for s in parse_study(shuffled).specs} == set(keys)


def test_overlapping_grids_give_each_run_once():
    twice = (
        GOOD + '[[grid]]\ndataset = "digits"\nmodel = "vgg9"\nnum_features = 16\ntemperature = 1\n'
    )
    assert len(parse_study(twice)) == len(parse_study(GOOD))


ONE, TWO = ", [[grid]] 1", ", [[grid]] 2"
WIDTHS, DATA = "num_features = [16, 32]", 'dataset = "digits"\nmodel = "r'


@pytest.mark.parametrize(
    ("old", "new", "table", "message"),
    [
        ("epochs = 3", "epoch = 3", ", [training]", "did you mean 'epochs'"),
        ("epochs = 3", "epochs = 'three'", ", [training]", "epochs must be a number"),
        ("epochs = 3", "epochs = [3, 4]", ", [training]", "lists stand in [[grid]]"),
        (WIDTHS, "num_feature = [16]", ONE, "did you mean 'num_features'"),
        (WIDTHS, "num_features = [16, 'a']", ONE, "num_features must be a number, got 'a'"),
        (WIDTHS, "num_features = [0]", ONE, "from 1 to"),
        (WIDTHS, "num_features = []", ONE, "num_features must have a value"),
        ('norm = ["batch", "none"]', 'norm = ["btach"]', ONE, "did you mean 'batch'"),
        ("temperature = [1, 2.5]", "temperature = [1, 0]", ONE, "temperature must be positive"),
        ("lr = [0.1, 0.01]", "lr = [0.1, -1]", TWO, "lr must be positive"),
        ("lr = [0.1, 0.01]", "temperature = 2", TWO, 'belong to method = "fixed"'),
        ('name = "s"', 'nam = "s"', "", "did you mean 'name'"),
        ('name = "s"', "name = 3", "", "a string"),
        (DATA, 'dataset = "/home/me/x.npz"\nmodel = "r', TWO, "--data-root"),
        (DATA, 'dataset = "../x.npz"\nmodel = "r', TWO, "data root"),
        (DATA, 'model = "r', TWO, "dataset must be given"),
    ],
)
def test_errors_name_the_table(old, new, table, message):
    assert old in GOOD
    with pytest.raises(TstarError, match=re.escape(message)) as caught:
        parse_study(GOOD.replace(old, new, 1), "mine")
    assert str(caught.value).startswith(f"mine{table}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the grid is empty"),
        ("[training]\nepochs = 3", "the grid is empty"),
        ("grid = 3", "must be tables"),
        ("[[grid]\n", "TOML"),
        ('[[grid]]\ndataset = "digits"\nmodel = "mlp"', "temperature or method must be given"),
        ('[[grid]]\ndataset="d"\nmodel="m"\ntemperature=1\nseeds=2\nseed=1', "not both"),
        (
            '[[grid]]\ndataset="d"\nmodel="m"\ntemperature=1\nscenario="finetune"',
            "weights must be given",
        ),
    ],
)
def test_malformed_studies(text, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        parse_study(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seeds = 10000000000000000000000", "from 1 to 1,000,000"),
        ("seeds = 2000000", "from 1 to 1,000,000"),
        ("seed = 10000000000000000000000", "from 0 to 2,147,483,647"),
        ("seed = -1", "from 0 to"),
        ("size = 10000000000000000000000", "from 1 to"),
        ("seed = [0, 1]\nseeds = 3", "seed or seeds"),
        ("lr = [" + "0.1, " * 2000 + "]\nseeds = 1000", "2,000,000 runs are more than"),
        (f"lr = {10**400}", "must be finite"),
        ("csg = -2", "csg must be positive"),
    ],
)
def test_numbers_without_bounds_are_refused_at_once(line, message):
    text = f'[[grid]]\ndataset = "digits"\nmodel = "mlp"\ntemperature = 1\n{line}\n'
    with pytest.raises(TstarError, match=message):
        parse_study(text)


PLAIN = '[[grid]]\ndataset = "digits"\nmodel = "mlp"\n'


def test_the_default_is_the_plain_network():
    study = parse_study(PLAIN + "temperature = [1, 4]")
    assert [spec.norm for spec in study.specs] == ["none", "none"]
    asked = parse_study(PLAIN + 'norm = "none"\ntemperature = [1, 4]')
    assert [spec.key for spec in study.specs] == [spec.key for spec in asked.specs]


@pytest.mark.parametrize(
    ("changes", "equal"),
    [
        (["epochs=5"], GOOD.replace("epochs = 3", "epochs = 5")),
        (["steps=7", "epochs=5"], GOOD.replace("epochs = 3", "epochs = 5")),
        (["seed=1,2"], GOOD.replace("seed = [0, 7]", "seed = [1, 2]")),
        (["seeds=3"], GOOD.replace("seed = [0, 7]", "seeds = 3")),
        (["lr=0.03"], GOOD.replace("lr = [0.1, 0.01]", "lr = 0.03")),
        (["model=mlp", "temperature=8"],
         GOOD.replace('["resnet10", "vgg9"]', '"mlp"').replace('"resnet10"\n', '"mlp"\n').replace("[1, 2.5]", "8")),
        (["optimizer=adam,adamw"],
         GOOD.replace('dataset = "digits"', 'dataset = "digits"\noptimizer = ["adam", "adamw"]')),
        (["epochs=3,4"], GOOD.replace("epochs = 3", "").replace('dataset = "digits"', 'dataset = "digits"\nepochs = [3, 4]')),
    ],
)  # fmt: skip
def test_keys_are_changed_from_the_command_line(tmp_path, changes, equal):
    (tmp_path / "s.toml").write_text(GOOD, encoding="utf-8")
    study = load_study(tmp_path / "s.toml", changes)
    assert {spec.key for spec in study.specs} == {spec.key for spec in parse_study(equal).specs}
    assert study.name == " ".join(["s", *changes])


@pytest.mark.parametrize("change", ["lr", "learning_rate=3", "lr=fast", "=3", "name=x"])
def test_a_change_that_means_nothing_is_refused(tmp_path, change):
    (tmp_path / "s.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(TstarError, match=r"must be KEY=VALUE|Unknown key|lr must be a number"):
        load_study(tmp_path / "s.toml", [change])
