"""Coefficient sets: the published numbers, and the round trip through JSON."""

import json

import pytest

from tstar import Coefficients, TstarError
from tstar.formula.coefficients import (
    Provenance,
    Scope,
    as_coefficients,
    get,
    published,
    training_aware,
)
from tstar.formula.law import Budget


def test_the_papers_table():
    table = {name: (c.alpha, c.beta, c.gamma, c.delta) for name, c in published().items()}
    assert table == {
        "base": (0.7239, -4.706, None, None),
        "csg": (0.4111, 6.848, -2.024, None),
        "cn": (0.4051, 6.656, None, -1.973),
        "csgcn": (0.3192, 20.74, 3.746, -7.38),
    }
    assert all((c.minimum, c.maximum) == (1.0, 512.0) for c in published().values())
    assert all(c.variant == name for name, c in published().items())


def test_the_sets_that_know_the_training():
    cn = published()["cn"]
    for name in ("budget", "speed"):
        both = (get(name), cn)
        one, other = ((c.alpha, c.beta, c.gamma, c.delta, c.minimum, c.maximum) for c in both)
        assert one == other
    assert get("budget").budget == Budget(
        sgd=0.28, adam=0.026, minimum=0.25, fitted={"sgd": (1, 320), "adam": (0.003, 3.2)}
    )
    assert get("speed").budget == Budget(
        sgd=0.61,
        power=0.25,
        adam=2.0,
        adam_finetune=0.5,
        minimum=0.25,
        maximum=64.0,
        fitted={"sgd": (0.046, 1096), "adam": (0.0112, 16.4)},
    )


def test_provenance_says_what_was_fitted_and_what_only_validated():
    origin = get("csgcn").provenance
    fitted, validated = (
        (scope.num_features, scope.num_classes, scope.csg)
        for scope in (origin.fitted, origin.validated)
    )
    assert fitted == ((64, 512), (10, 200), (1.53, 88.72))
    assert validated == ((768, 2048), (8, 200), (1.39, 75.32))
    paper = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "epochs": 200, "batch_size": 128}
    assert {name: origin.training[name] for name in paper} == paper
    for name, features, classes in (
        ("budget", (32, 1280), (6, 300)),
        ("speed", (16, 2048), (2, 200)),
    ):
        scope = get(name).provenance.fitted
        assert (scope.num_features, scope.num_classes) == (features, classes)


def test_round_trip(tmp_path):
    own = Coefficients(
        "mine",
        alpha=0.5,
        beta=-1.0,
        gamma=2.0,
        minimum=0.25,
        provenance=Provenance(
            "my sweep",
            fitted=Scope(num_features=(32, 64), note="two widths"),
            training={"optimizer": "adamw"},
        ),
    )
    own.save(tmp_path / "c.json")
    assert Coefficients.load(tmp_path / "c.json") == own
    for published_set in published().values():
        published_set.save(tmp_path / "p.json")
        assert Coefficients.load(tmp_path / "p.json") == published_set


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON file"),
        ("[1]", "one JSON object"),
        ('{"name": "x", "alpha": 1}', "needs beta"),
        ('{"name": "x", "alpha": "1", "beta": 0}', "alpha must be a number"),
        ('{"name": "x", "alpha": NaN, "beta": 0}', "alpha must be finite"),
        ('{"name": "x", "alpha": 1, "beta": 0, "gama": 2}', "did you mean 'gamma'"),
        ('{"name": "x", "alpha": 1, "beta": 0, "minimum": 5, "maximum": 2}', "minimum <= maximum"),
        ('{"name": "x", "alpha": 1, "beta": 0, "format": 99}', "format 99"),
        (
            '{"name": "x", "alpha": 1, "beta": 0, "provenance": {"fitted": {"csg": 3}}}',
            r"\[low, high\]",
        ),
        ('{"name": "x", "alpha": 1, "beta": 0, "provenance": "paper"}', "table of fields"),
        ('{"name": "x", "alpha": 1, "beta": 0, "provenance": {"training": 3}}', "table of fields"),
        ('{"name": "x", "alpha": 1, "beta": 0, "provenance": {"fitted": []}}', "table of ranges"),
        ('{"name": "x", "alpha": 1, "beta": 0, "budget": 3}', "table of numbers"),
        ('{"name": "x", "alpha": 1' + 400 * "0" + ', "beta": 0}', "alpha must be finite"),
        ('{"name": "x", "alpha": 1' + 5000 * "0" + ', "beta": 0}', "not a JSON file"),
        (200_000 * "[", "not a JSON file"),
    ],
)
def test_malformed_files(tmp_path, text, message):
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TstarError, match=message) as caught:
        Coefficients.load(path)
    assert "c.json" in str(caught.value)  # the file is named


def test_missing_file(tmp_path):
    with pytest.raises(TstarError, match="does not exist"):
        Coefficients.load(tmp_path / "none.json")


def test_saved_file_is_plain_json(tmp_path):
    get("cn").save(tmp_path / "cn.json")
    data = json.loads((tmp_path / "cn.json").read_text(encoding="utf-8"))
    assert data["format"] == 1
    assert data["delta"] == -1.973
    assert "gamma" not in data


def test_a_set_is_named_by_what_it_uses():
    assert get("budget").variant == "budget"
    assert get("speed").variant == "speed"
    assert training_aware() is get("speed")
    assert set(published()) == {"base", "csg", "cn", "csgcn"}
    assert Coefficients("mine", 1.0, 0.0, gamma=0.0, delta=0.0).variant == "csgcn"


@pytest.mark.parametrize("name", ["budget", "speed"])
def test_sets_with_a_budget_come_back_too(name, tmp_path):
    get(name).save(tmp_path / "b.json")
    assert Coefficients.load(tmp_path / "b.json") == get(name)


def test_a_range_includes_its_ends():
    scope = Scope(num_features=(64, 512))
    inside = [scope.contains("num_features", value) for value in (63.9, 64, 512, 512.1)]
    assert inside == [False, True, True, False]
    assert scope.contains("csg", 3.0) is None


def test_the_bounds_clip():
    own = Coefficients("mine", 1.0, 0.0, minimum=2, maximum=5)
    assert [own.clip(T) for T in (-1.0, 2.0, 3.5, 5.0, 6.0)] == [2.0, 2.0, 3.5, 5.0, 5.0]
    assert Coefficients("one", 1.0, 0.0, minimum=2, maximum=2).clip(9) == 2.0
    for low, high in ((0, 5), (-1, 5), (3, 2)):
        with pytest.raises(TstarError, match="minimum <= maximum must hold in coefficient set 'x'"):
            Coefficients("x", 1.0, 0.0, minimum=low, maximum=high)


def test_what_is_written_of_a_set():
    own = Coefficients("mine", 0.5, -1.0, delta=2.0, provenance=Provenance("me", Scope(csg=(1, 2))))
    assert own.to_dict() == {
        **{"name": "mine", "alpha": 0.5, "beta": -1.0, "delta": 2.0, "minimum": 1.0, "maximum": 512.0},
        "provenance": {"source": "me", "fitted": {"csg": [1, 2]}, "validated": {}, "training": {}},
    }  # fmt: skip
    assert Coefficients.from_dict({"name": "x", "alpha": 1, "beta": 2}).provenance == Provenance()


def test_records_and_paths_are_coefficients(tmp_path):
    own = Coefficients("mine", 0.5, -1.0)
    own.save(tmp_path / "mine.json")
    assert as_coefficients(own) is own
    assert (
        as_coefficients(tmp_path / "mine.json")
        == as_coefficients(str(tmp_path / "mine.json"))
        == own
    )
    with pytest.raises(TstarError, match="Coefficients record or a path to its JSON file, got 3"):
        as_coefficients(3)
    with pytest.raises(TstarError, match="budget must be a Budget record"):
        Coefficients("mine", 0.5, -1.0, budget={"sgd": 1.0})


@pytest.mark.parametrize("name", ["csgnc", [], None])
def test_a_variant_that_does_not_exist(name):
    with pytest.raises(TstarError, match="Unknown variant"):
        get(name)
