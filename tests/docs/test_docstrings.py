"""The examples in docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import tstar

PACKAGE = Path(tstar.__file__).parent
MODULES = sorted(
    ".".join(("tstar", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(
        module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert tried > 0
    assert failed == 0
