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


@pytest.mark.parametrize("extra", ["", ", '--json'"])
def test_the_command_line_answers_without_torch(extra):
    code = (
        "import sys; sys.argv = ['tstar', 'temperature', '--features', '2048', '--classes', '8', '--csg', '3.85'"
        f"{extra}]\nfrom tstar.cli import main\ntry:\n    main()\nexcept SystemExit as e:\n    assert not e.code"
    )
    assert loaded_by(code) == set()


def test_help_is_light():
    code = (
        "import sys; sys.argv = ['tstar', '--help']\nfrom tstar.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code"
    )
    assert loaded_by(code) == set()


def test_public_names_survive_importing_every_module():
    for module in pkgutil.walk_packages(tstar.__path__, "tstar."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    modules = set(tstar._SUBPACKAGES)
    for name in tstar.__all__:
        value = getattr(tstar, name)
        assert (type(value).__name__ == "module") == (name in modules), f"tstar.{name} is {value!r}"


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'temprature'"):
        _ = tstar.temprature


def test_dir_lists_the_public_names():
    assert set(tstar.__all__) <= set(dir(tstar))


def test_every_lazy_name_is_public():
    assert {*tstar._LAZY, *tstar._SUBPACKAGES} <= set(tstar.__all__)
