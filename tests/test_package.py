"""What importing the package costs, and that no module hides a public name."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import tstar

HEAVY = ("torch", "numpy", "scipy", "pandas", "matplotlib", "sklearn", "ray")


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after running ``code``."""
    report = (
        f"{code}\nimport sys; print(*[m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, encoding="utf-8", check=True
    )
    return set(done.stderr.split())


def test_import_is_light():
    assert loaded_by("import tstar; tstar.temperature(64, 10)") == set()


def test_this_check_can_fail():
    assert "torch" in loaded_by("import tstar; tstar.find_head")


@pytest.mark.parametrize(
    "words", ["--help", "temperature --features 64", "temperature --features 64 --json"]
)
def test_the_command_line_answers_without_torch(words):
    code = (
        f"import sys; sys.argv = ['tstar', *{words.split()}]\nfrom tstar.lab.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code"
    )
    assert loaded_by(code) == set()


def test_public_names_survive_importing_every_module():
    for module in pkgutil.walk_packages(tstar.__path__, "tstar."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in tstar.__all__:
        assert type(getattr(tstar, name)).__name__ != "module", f"tstar.{name} is a module"
    assert type(tstar.lab).__name__ == "module"


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'temprature'"):
        _ = tstar.temprature


def test_the_public_names_are_few_and_every_lazy_one_is_among_them():
    assert len(tstar.__all__) == 15
    assert set(tstar.__all__) <= set(dir(tstar))
    assert {*tstar._LAZY} <= set(tstar.__all__)
