import importlib.util
import sys
from pathlib import Path

import pytest


def _load():
    path = Path(__file__).with_name("helpers.py")
    spec = importlib.util.spec_from_file_location("difficulty_helpers", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def helpers():
    return _load()
