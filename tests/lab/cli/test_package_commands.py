"""Demo, calculator, info, receipt and atlas as a user types them."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn

import tstar
from tests.lab.test_demo import measured
from tstar.errors import TstarError
from tstar.lab import atlas, demo
from tstar.lab.calculator import page


@pytest.fixture
def asked(monkeypatch):
    """The demo's training is replaced by known numbers."""
    found = []
    monkeypatch.setattr(demo, "run", lambda *options: found.append(options) or measured(20))
    return found


def test_the_demo_shows_the_advice_the_result_and_the_figure(run, asked):
    shown = run("demo", "-o", "demo.png", "--seeds", "2").output
    assert "the advice in words" in shown
    assert "+20.0 points over 3 seeds" in " ".join(shown.split())
    assert Path("demo.png").exists()
    assert asked[0][0] == 2
    facts = json.loads(run("demo", "--json").stdout)  # all there is on stdout
    assert facts["accuracy"] == pytest.approx({"default": 60.0, "advised": 80.0})


def test_the_demo_asks_for_a_format_first_and_draws_only_with_matplotlib(run, asked, monkeypatch):
    with pytest.raises(TstarError, match="format of a figure 'gif'"):
        run("demo", "-o", "demo.gif")
    assert asked == []
    monkeypatch.setattr("tstar.lab.cli.package_commands.find_spec", lambda name: None)
    assert run("demo").stdout.endswith("With a figure: pip install 'tstar[lab]'\n")
    assert not Path("tstar-demo.png").exists()


def test_the_calculator_is_written(run):
    assert run("calculator").stdout.strip() == "tstar-calculator.html"
    assert Path("tstar-calculator.html").read_text(encoding="utf-8") == page()


def test_info_has_the_facts_of_this_process(run, monkeypatch):
    facts = json.loads(run("info", "--json").stdout)
    assert facts["tstar"] == tstar.__version__
    assert facts["torch"] == torch.__version__
    assert facts["threads"].startswith(f"{torch.get_num_threads()} ")
    assert isinstance(facts["store format"], int)
    monkeypatch.setattr("tstar.lab.cli.package_commands._PACKAGES", ("rich", "no-such-package"))
    *_, rich, missing = run("info").stdout.splitlines()
    assert rich.split()[0] == "rich"
    assert missing.split(maxsplit=1) == ["no-such-package", "not installed"]


@pytest.fixture
def advice(run):
    """An advice, saved in the working directory."""
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    how = dict(optimizer="sgd", lr=0.1, steps=800, batch_size=64, samples=2000)
    advice = tstar.recommend(model, **how)
    advice.save("recipe.json")
    return advice


def test_receipts_are_appended_and_shared_as_one_block(run, advice):
    run("receipt", "recipe.json", "--accuracy", "0.83", "--plain", "0.81")
    run("receipt", "recipe.json", "--accuracy", "0.7")
    first, *lines, last = run("receipt", "--share").stdout.splitlines()
    assert (first, last) == ("```json", "```")
    one, two = map(json.loads, lines)
    assert one["gain"] == pytest.approx(2.0)
    assert two["gain"] is None
    names = ("temperature", "lr", "weight_decay", "head_lr", "action", "norm")
    assert {name: one[name] for name in names} == {n: getattr(advice, n) for n in names}
    assert one["num_classes"] == advice.facts.num_classes
    assert (one["training"]["optimizer"], one["training"]["lr"]) == ("sgd", 0.1)
    found = advice.expectation
    wanted = {"median": found.median, "low": found.low, "high": found.high}
    assert one["expected"] == pytest.approx(wanted, abs=0.01)


def test_what_is_no_advice_is_refused(run, advice):
    for text in ("[1]", "T = 3", '{"temperature": 3}'):
        Path("other.json").write_text(text, encoding="utf-8")
        with pytest.raises(TstarError, match=r"an advice|JSON object"):
            run("receipt", "other.json", "--accuracy", "0.5")
    with pytest.raises(TstarError, match="needs the recipe and --accuracy"):
        run("receipt", "recipe.json")
    with pytest.raises(TstarError, match="no receipt"):
        run("receipt", "--share")
    run("receipt", "recipe.json", "--accuracy", "83", code=2)
    assert not Path("tstar-receipts.jsonl").exists()


def test_the_atlas_is_chosen_from_and_printed(run):
    condition = "atlas == 2 and optimizer == 'adamw' and steps > 1000"
    told = pd.read_csv(io.StringIO(run("atlas", "--where", condition, "--csv").stdout))
    runs = atlas().query("atlas == 2")
    wanted = runs[(runs.optimizer == "adamw") & (runs.steps > 1000)]
    assert len(wanted) > 10
    assert list(told.key) == list(wanted.key)
    assert list(told.columns) == list(runs.columns)
    out = run("atlas").stdout
    assert f"{len(atlas()):,} runs" in out
    assert len(out.splitlines()) < 30
    with pytest.raises(TstarError, match="name 'nope' is not defined"):
        run("atlas", "--where", "nope > 1")
