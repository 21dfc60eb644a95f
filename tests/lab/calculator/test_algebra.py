"""The page's algebra is Python's, over a grid: the equation, the law, the choice and the rules."""

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

import tstar.lab.calculator
from tstar.errors import TstarError
from tstar.formula import choose_variant, published, temperature
from tstar.lab.calculator import facts
from tstar.lab.methods.rules import LABELS, rule
from tstar.law import law_temperature
from tstar.training import Training

HERE = Path(tstar.lab.calculator.__file__).parent
TASKS = [
    (M, K, csg)
    for M in (1, 42, 512, 2048, 4_000_000)
    for K in (None, 2, 3, 10, 1000)
    for csg in (None, 1e-5, 1.39, 25.0, 88.72, 1234.5)
]
TRAININGS = [
    {"family": family, "lr": lr, "steps": steps, "momentum": mu, "batch": B, "scenario": scenario}
    for family, lr in (("sgd", 0.1), ("sgd", 0.003), ("adam", 1e-3))
    for steps in (50, 2000)
    for mu, B in ((None, None), (0.0, 16), (0.95, 512))
    for scenario in (None, "scratch", "finetune")
]
NOTHING = {"family": None, "lr": None, "steps": None, "momentum": None, "batch": None}


@pytest.fixture(scope="module")
def run():
    """A function from JavaScript to what it prints, in node; without node these tests skip."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    algebra = (HERE / "formula.js").read_text(encoding="utf-8")

    def run(code: str, cases: object):
        script = f"{algebra}\nconst known = {json.dumps(facts())}, cases = {json.dumps(cases)};\n"
        script += f"console.log(JSON.stringify(cases.map({code})));"
        done = subprocess.run(
            [node, "-"], input=script, capture_output=True, encoding="utf-8", check=True
        )
        return json.loads(done.stdout)

    return run


def given(M, K, csg):
    return {"num_features": M, "num_classes": K, "csg": csg}


def python(*case, by=temperature, **options):
    try:
        return by(*case, **options)
    except TstarError:
        return None


def same(got, wanted):
    assert (got is None) == (wanted is None)
    assert wanted is None or got == pytest.approx(wanted, rel=1e-12)


def test_the_equation_and_the_rules(run):
    code = """(facts) => ({
        sets: Object.fromEntries(Object.entries(known.sets).map(
            ([name, set]) => [name, explainSet(set, facts)?.temperature ?? null])),
        rules: Object.fromEntries(known.rules.map(
            ({ name }) => [name, applyRule(known, name, facts, 64).temperature ?? null])),
    })"""
    for case, got in zip(TASKS, run(code, [given(*case) for case in TASKS]), strict=True):
        for name in published():
            same(got["sets"][name], python(*case, variant=name))
        for name in LABELS:
            same(got["rules"][name], python(*case, by=partial(rule, name, base_features=64)))


def test_the_choice_without_a_training(run):
    cases = [{"facts": given(*case), "training": NOTHING} for case in TASKS]
    code = "({ facts, training }) => decide(known, facts, training).name"
    for case, got in zip(cases, run(code, cases), strict=True):
        csg, K = case["facts"]["csg"], case["facts"]["num_classes"]
        assert got == choose_variant(K is not None, csg is not None), case


def test_the_law_for_a_training(run):
    cases = [
        {"facts": given(M, K, None), "training": training}
        for M in (64, 512, 4_000_000)
        for K in (10, 200)
        for training in TRAININGS
    ]
    code = "(c) => [decide(known, c.facts, c.training).name, decide(known, c.facts, c.training).temperature]"
    for case, (name, T) in zip(cases, run(code, cases), strict=True):
        how = dict(case["training"])
        optimizer, batch_size = {"sgd": "sgd", "adam": "adamw"}[how.pop("family")], how.pop("batch")
        training = Training(optimizer, batch_size=batch_size, **how)
        facts = case["facts"]
        wanted = law_temperature(facts["num_features"], facts["num_classes"], training)
        assert name == "law"
        assert pytest.approx(wanted, rel=1e-12) == T, case
