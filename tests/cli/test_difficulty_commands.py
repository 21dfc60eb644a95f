"""``tstar csg`` at the prompt."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import tstar
from tstar.cli import use_commands  # noqa: F401  (registers recommend)
from tstar.cli.app import app
from tstar.cli.difficulty_commands import _temperatures
from tstar.errors import TstarError


@pytest.fixture
def stored(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 12
    x = np.clip(
        120 + 12 * rng.normal(size=(12, 16, 16, 3))[y] + 45 * rng.normal(size=(240, 16, 16, 3)),
        0,
        255,
    )
    np.savez(tmp_path / "set.npz", x_train=x.astype(np.uint8), y_train=y)
    return tmp_path / "set.npz"


def run(*arguments):
    result = CliRunner().invoke(app, ["csg", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_json_holds_what_the_library_says(stored):
    found = json.loads(run(stored, "--json", "--seed", 3, "--samples", 15).stdout)
    expected = tstar.csg(stored, seed=3, samples=15)
    assert found["csg"] == expected.value
    assert found["interval"] == list(expected.interval)
    assert found["temperatures"].keys() == {"64", "128", "256", "512", "768", "1024", "2048"}


def test_a_name_is_looked_up_below_the_data_root(stored):
    found = json.loads(run("set", "--data-root", stored.parent, "--json").stdout)
    assert found["csg"] == tstar.csg(stored).value
    with pytest.raises(TstarError, match="nor a file or folder below the data root"):
        run("set", "--data-root", stored.parent / "elsewhere")


def test_the_page_shows_value_interval_pairs_and_temperatures(stored, tmp_path):
    result = run(stored, "-o", tmp_path / "csg.png", "--repeats", 2, "--samples", 15)
    assert "csg = " in result.stdout
    assert "over 2 draws" in result.stdout
    assert "most alike" in result.stdout
    assert "2048" in result.stdout
    assert (tmp_path / "csg.png").exists()


def test_inside_the_papers_range_csg_counts_and_outside_it_does_not(helpers_csg):
    rows = _temperatures(helpers_csg(25.5, 100))
    assert "full formula" in rows[0][1].reason
    assert dict(rows)[512].temperature == tstar.temperature(512, 100, 25.5)
    for value in 0.0, 0.1, 1.38, 88.8:
        rows = _temperatures(helpers_csg(value, 100))
        assert "1.39–88.72" in rows[0][1].reason
        assert dict(rows)[512].temperature == tstar.temperature(512, 100)


@pytest.fixture
def helpers_csg():
    def make(value, classes):
        class Stub:
            num_classes = classes

        stub = Stub()
        stub.value = value
        return stub

    return make


def test_a_name_is_good_for_csg_and_for_recommend_alike():
    pytest.importorskip("sklearn")
    measured = json.loads(run("digits", "--json").stdout)
    assert (
        measured["csg"] == tstar.csg("digits").value == tstar.csg(tstar.data.load("digits")).value
    )
    options = ["recommend", "--model", "resnet10", "--data", "digits", "--json"]
    advice = json.loads(CliRunner().invoke(app, options, catch_exceptions=False).stdout)
    assert advice["csg"] == measured["csg"]


def test_errors_are_the_packages_own(tmp_path):
    with pytest.raises(TstarError, match="no-such-set"):
        run("no-such-set")


def test_the_module_does_not_import_torch():
    code = "import sys, tstar.cli.difficulty_commands; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
