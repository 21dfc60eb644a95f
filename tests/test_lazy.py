"""One way to load names when they are first used."""

import random
import sys

import pytest

from tstar.lazy import imported, lazy


def test_names_come_from_their_homes_and_modules_are_themselves():
    load = lazy("tstar.formula", {"temperature": "equation", "rules": None})
    import tstar

    assert load("temperature") is tstar.temperature
    assert load("rules") is sys.modules["tstar.formula.rules"]
    with pytest.raises(AttributeError, match=r"module 'tstar.formula' has no attribute 'nothing'"):
        load("nothing")


@pytest.mark.parametrize("name", ["tstar", "tstar.sweep", "tstar.methods", "tstar.training"])
def test_every_listed_name_loads(name):
    package = __import__(name, fromlist=["_LAZY"])
    for listed in package.__all__:
        assert getattr(package, listed) is not None


def test_an_import_that_draws_leaves_the_generator_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "drawing_at_import.py").write_text(
        "import random\nrandom.random()\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = random.getstate()
    assert imported("drawing_at_import").__name__ == "drawing_at_import"
    assert random.getstate() == before
