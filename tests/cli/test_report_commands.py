"""``tstar report`` and ``tstar figure`` at the prompt."""

import json
import shlex

import pytest
from typer.testing import CliRunner

from research.synthetic import planted_runs
from tstar import TstarError
from tstar.cli.app import _load_commands, app

_load_commands()


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    frame = planted_runs(
        grid=[1.0, 4.0, 16.0, 64.0],
        tasks=((1.5, 10), (20.0, 100)),
        widths=(64,),
        seeds=2,
        noise=0.01,
    )
    frame.to_csv(path, index=False)
    return path


def call(*arguments):
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], catch_exceptions=False
    )


def test_a_report_is_made_and_says_its_headline(runs, tmp_path):
    done = call("report", runs, "-o", tmp_path / "out", "--formats", "svg", "--no-fits")
    assert done.exit_code == 0
    assert "with BN at the law's T" in done.stdout
    assert "not shown: T × M without BN" in done.stdout
    assert (tmp_path / "out" / "index.html").exists()
    assert (tmp_path / "out" / "figures" / "recommended.svg").exists()
    assert not list((tmp_path / "out" / "figures").glob("*.png"))
    about = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    command = shlex.join(["tstar", "report", str(runs), "--metric", "test", "--no-fits"])
    assert about["origin"]["command"] == command


def test_the_list_of_figures_is_there_without_runs():
    names = [entry["name"] for entry in json.loads(call("figure", "--json").stdout)]
    assert len(names) == 13
    shown = call("figure").stdout
    assert all(name in shown for name in names)


def test_a_figure_s_data_are_printed(runs):
    data = json.loads(call("figure", "recommended", runs, "--json", "--variant", "csgcn").stdout)
    assert len(data["points"]) == 2
    # Planted at the T of csgcn: the formula is right, and the grid's best T is its neighbor.
    assert all(point["regret"] < 8 for point in data["points"])


def test_a_figure_is_drawn_where_it_was_asked_for(tmp_path):
    done = call("figure", "softmax", "-o", tmp_path / "a.pdf")
    assert done.stdout.strip() == str(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure", "heatmap"), "did you mean 'heatmaps'"),
        (("figure", "heatmaps"), "give a store"),
        (("figure", "softmax", "-o", "a.gif"), "format of a figure 'gif'"),
        (("report", "nothing.db"), "does not exist"),
    ],
)
def test_mistakes_are_named(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TstarError, match=message):
        call(*arguments)
