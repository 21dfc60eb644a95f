"""The command line of the use flow, as its user types it."""

import json
import subprocess
import sys

import pytest


def tstar(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tstar", *words], capture_output=True, text=True, check=False
    )


def test_temperature_prints_the_value_and_its_terms():
    done = tstar("temperature", "--features", "2048", "--classes", "8", "--csg", "3.85")
    assert done.returncode == 0
    assert "T* = 24.89" in done.stdout
    assert "γ·ln csg" in done.stdout
    assert "validated" in done.stdout


def test_temperature_json():
    done = tstar("temperature", "--features", "64", "--classes", "10", "--json")
    assert json.loads(done.stdout)["temperature"] == pytest.approx(5.3538, abs=1e-4)


def test_temperature_for_a_training():
    words = ("--features", "384", "--classes", "77", "--optimizer", "adamw", "--steps", "120")
    done = tstar("temperature", *words, "--lr", "3e-4")
    assert done.returncode == 0
    assert done.stdout.startswith("T = 0.")
    text = " ".join(done.stdout.split())  # whatever the width of the terminal
    assert "a·lr·steps·M" in text
    assert "it decides" in text
    assert "lr is missing" in tstar("temperature", *words).stderr


def test_an_error_is_one_line_and_debug_shows_the_traceback():
    done = tstar("temperature", "--features", "0")
    assert done.returncode == 1
    assert (
        done.stderr
        == "error num_features must be a whole number of at least 1, got num_features=0.\n"
    )
    assert "Traceback" in tstar("--debug", "temperature", "--features", "0").stderr


def test_version():
    import tstar as package

    assert tstar("--version").stdout.strip() == f"tstar {package.__version__}"


def test_help_lists_the_flows():
    out = tstar("--help").stdout
    assert "Use:" in out
    assert "temperature" in out
