"""Every example runs, learns, and is short."""

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDS = {
    "plain_pytorch": (),
    "mixed_precision": (),
    "without_touching_the_model": (),
    "distributed": (),
    "lightning_trainer": ("lightning",),
    "timm_training": ("timm",),
    "transformers_text": ("transformers", "accelerate"),
    "export_onnx": ("onnx", "onnxscript", "onnxruntime"),
}
QUICK = {"plain_pytorch", "mixed_precision", "without_touching_the_model"}


@pytest.fixture
def example(monkeypatch):
    """Imports an example as its folder's own scripts would, and forgets it afterwards."""
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and EXAMPLES.samefile(
            Path(sys.modules[name].__file__).parent
        ):
            del sys.modules[name]


@pytest.mark.filterwarnings("default")  # the trainers' own warnings are not ours
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NEEDS]
)
def test_it_runs_and_learns(example, name):
    for package in NEEDS[name]:
        pytest.importorskip(package)
    longer = {"timm_training": 8, "transformers_text": 12}
    _plain, advised = example(name).main(samples=500, epochs=longer.get(name, 4))
    assert advised > 0.3  # ten classes: chance is 0.1


def test_every_example_is_listed_and_under_sixty_lines():
    files = {path.stem: path for path in EXAMPLES.glob("*.py")}
    assert set(files) == {*NEEDS, "digits"}
    for path in files.values():
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60, path.name
