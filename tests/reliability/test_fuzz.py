"""A slice of ``benchmarks/fuzz.py``: every door answers or refuses with one clear error."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("PIL")
pytest.importorskip("safetensors")
pytest.importorskip("sklearn")

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", PATH)
fuzz = importlib.util.module_from_spec(spec)
sys.modules["fuzz"] = fuzz
spec.loader.exec_module(fuzz)

INPUTS = {"formula": 200, "images": 15}


@pytest.mark.parametrize("door", [door for door in fuzz.DOORS if door != "store"])
def test_a_door_answers_or_refuses(door, tmp_path):
    outcomes = {i: fuzz.attempt(door, i, tmp_path) for i in range(INPUTS.get(door, 40))}
    assert {i: o for i, o in outcomes.items() if o not in ("answered", "refused")} == {}
    assert "refused" in outcomes.values()
    if door != "kinds":  # else nothing behind the first check was reached
        assert "answered" in outcomes.values()


@pytest.mark.slow
def test_the_store_answers_or_refuses(tmp_path):
    outcomes = {i: fuzz.attempt("store", i, tmp_path) for i in range(60)}
    assert {i: o for i, o in outcomes.items() if o not in ("answered", "refused")} == {}
    assert set(outcomes.values()) == {"answered", "refused"}


def test_an_exception_of_another_kind_and_a_wrong_number_are_found(tmp_path, monkeypatch):
    def breaks(rng, folder):
        return {}["x"]

    def lies(rng, folder):
        fuzz.positive(float("nan"), "T")

    monkeypatch.setitem(fuzz.DOORS, "breaks", (breaks, 0.0))
    monkeypatch.setitem(fuzz.DOORS, "lies", (lies, 0.0))
    assert fuzz.attempt("breaks", 0, tmp_path).startswith("KeyError at test_fuzz.py")
    assert fuzz.attempt("lies", 0, tmp_path) == "wrong: T = nan"


@pytest.mark.slow
def test_the_script_counts_every_input(tmp_path):
    output = tmp_path / "fuzz.json"
    command = [sys.executable, str(PATH), "--inputs", "60", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["inputs"] == sum(n for c in report["counts"].values() for n in c.values()) >= 60
