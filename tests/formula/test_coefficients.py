"""Coefficient sets: the published numbers, and the round trip through JSON."""

import json

import pytest

from tstar import Coefficients, TstarError
from tstar.formula.coefficients import Provenance, Scope, get, published


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


def test_provenance_says_what_was_fitted_and_what_only_validated():
    origin = get("csgcn").provenance
    assert origin.fitted.num_features == (64, 512)
    assert origin.fitted.csg == (1.53, 88.72)
    assert origin.validated.num_features == (768, 2048)
    assert origin.validated.num_classes == (8, 200)
    assert origin.training["lr"] == 0.1
    assert origin.training["epochs"] == 200


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
