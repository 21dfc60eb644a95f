"""``tstar fit``, ``paper``, ``report`` and ``figure`` at the prompt."""

import json

import pytest
from typer.testing import CliRunner

from tests.synthetic import PAPER_TASKS, planted_runs
from tstar import Coefficients, TstarError
from tstar.lab.cli.app import _load_commands, app

_load_commands()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Few runs, with a training that the law was measured on."""
    path = tmp_path_factory.mktemp("report") / "runs.csv"
    small = {"grid": [1.0, 4.0, 16.0, 64.0], "tasks": ((1.5, 10), (20.0, 100))}
    frame = planted_runs(**small, widths=(64, 256), seeds=2, noise=0.01)
    how = {"optimizer": "sgd", "lr": 0.1, "steps": 400, "batch_size": 64}
    frame.assign(**how).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Tasks enough to fit all variants."""
    path = tmp_path_factory.mktemp("fit") / "runs.csv"
    frame = planted_runs(widths=(64, 512), tasks=PAPER_TASKS[2:], seeds=2, noise=0.005)
    frame.to_csv(path, index=False)
    return path


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_fit_prints_and_saves(tasks, tmp_path):
    out = tmp_path / "mine.json"
    shown = call("fit", tasks, "--restarts", 1, "--bootstrap", 3, "-o", out).stdout
    assert "T* = clip(" in shown
    assert "bootstrap over conditions" in shown
    assert Coefficients.load(out).variant == "csgcn"


def test_fit_json_is_json_alone(tasks):
    how = ("--variant", "cn", "--restarts", 1, "--bootstrap", 0, "--metric", "test")
    data = json.loads(call("fit", tasks, *how, "--json").stdout)
    assert data["how"].startswith("test accuracy")
    assert data["coefficients"]["delta"] < 0
    assert data["intervals"] == {}


def test_fit_tables(tasks):
    words = ("fit", tasks, "--per-environment", "--restarts", 1)
    data = json.loads(call(*words, "--json").stdout)
    assert [row["model"] for row in data["rows"]][-4:-2] == ["Avg.", "S.D."]
    assert data["rows"][0]["alpha"] is None
    text = call(*words).stdout
    assert "S.D." in text
    assert "–" in text


def test_fit_cross_validates_one_variant_if_asked(tasks):
    words = ("fit", tasks, "--cross-validate", "--variant", "cn", "--restarts", 1, "--json")
    data = json.loads(call(*words).stdout)
    found = [(row["correction"], row["optimization"]) for row in data["rows"]]
    assert found == [("cn", "CO"), ("cn", "GO")]


def test_the_paper_s_interpolation_reaches_its_table_of_environments(tasks):
    words = ("paper", "environments", "--runs", tasks, "--interpolation", "T")
    assert "linear in T between" in call(*words).stdout
    with pytest.raises(TstarError, match="Only tables of coefficients interpolate in T"):
        call("paper", "datasets", *words[2:])


def test_the_paper_s_footnotes_stand_under_the_paper_s_table(tmp_path):
    runs = planted_runs(tasks=PAPER_TASKS[:1], widths=(64,))
    runs.assign(dataset="caltech101", model="vit_b_16").to_csv(tmp_path / "runs.csv", index=False)
    shown = call("paper", "transformers", "--runs", tmp_path / "runs.csv").stdout
    printed, _, own = shown.partition("The same from your runs")
    assert "53.61%" in printed
    assert "ViT" in own
    assert "53.61%" not in own


def test_paper_lists_and_shows():
    listed = [line.split()[:3] for line in call("paper").stdout.splitlines()]
    assert [int(words[2]) for words in listed if words[1] == "Table"] == [*range(1, 9)]
    assert ["coefficients", "Table", "4"] in listed
    assert "**72.39**" in call("paper", "datasets").stdout
    assert "53.61%" in call("paper", "transformers").stdout
    data = json.loads(call("paper", "coefficients", "--json").stdout)
    base = {"alpha": 0.7239, "beta": -4.706, "gamma": None, "delta": None}
    assert data["paper"][0] == {"variant": "base", **base}


def test_paper_beside_runs(tasks):
    words = ("paper", "coefficients", "--runs", tasks, "--metric", "val", "--json")
    data = json.loads(call(*words).stdout)
    assert [row["variant"] for row in data["yours"]] == ["base", "csg", "cn", "csgcn"]
    shown = call("paper", "datasets", "--runs", tasks).stdout
    own = shown.partition("The same from your runs")[2]
    assert "task0" in own
    assert "median over seeds" in own


def test_a_report_is_made_and_says_its_headline(runs, tmp_path):
    words = ("report", runs, "-o", tmp_path / "out", "--no-fits")
    shown = call(*words).stdout
    assert "at the law's T" in shown
    assert "not shown: T × M without BN" in shown
    assert (tmp_path / "out" / "figures" / "recommended.svg").exists()
    assert not list((tmp_path / "out" / "figures").glob("*.png"))
    assert str(tmp_path / "out" / "index.html") in shown


def test_figures_are_listed_drawn_where_asked_for_or_printed_as_data(runs, tmp_path):
    listed = call("figure", "--list").stdout.splitlines()
    assert listed == call("figure").stdout.splitlines()
    assert len(listed) == 10
    assert "Fig. 9 " in next(line for line in listed if line.startswith("difficulty"))
    drawn = call("figure", "recommended", runs, "-o", tmp_path / "a.pdf").stdout
    assert drawn.strip() == str(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    data = json.loads(call("figure", "recommended", runs, "--json", "--variant", "csgcn").stdout)
    assert len(data) == 4
    # Planted at the T of csgcn: the formula is right, and the grid's best T is its neighbor.
    assert all(point["regret"] < 8 for point in data)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("figure", "heatmap"), "did you mean 'heatmaps'"),
        (("figure", "heatmaps"), "needs a store"),
        (("figure", "accuracy", "-o", "a.gif"), "format of a figure 'gif'"),
        (("report", "nothing.db"), "does not exist"),
        (("fit", "nowhere.db"), "does not exist"),
        (("fit", "nowhere.db", "--per-environment", "--cross-validate"), "at a time"),
        (("fit", "nowhere.db", "--per-environment", "--variant", "cn"), "α and β alone, got .*cn"),
    ],
)
def test_mistakes_are_named(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TstarError, match=message):
        call(*words)
