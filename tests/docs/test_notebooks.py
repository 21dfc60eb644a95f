"""The tutorials run from the first cell to the last, and are shown as they are."""

import copy
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def notebooks():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_cells(*sources):
    cells = [{"cell_type": "code", "outputs": [], "source": [source]} for source in sources]
    return {"cells": [{"cell_type": "markdown", "source": ["# Title"]}, *cells]}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as in a user's session
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, notebooks, tmp_path):
    for needed in ("sklearn", "pandas", "scipy", "matplotlib"):
        pytest.importorskip(needed)
    kept = notebooks.read(path)
    now = copy.deepcopy(kept)
    notebooks.run(now, tmp_path)
    shown = [[o["output_type"] for o in c.get("outputs", [])] for c in now["cells"]]
    assert shown == [[o["output_type"] for o in c.get("outputs", [])] for c in kept["cells"]], (
        f"run python docs/notebooks.py {path.relative_to(ROOT)}"
    )


def test_there_are_two():
    assert [path.stem for path in TUTORIALS] == ["practitioner", "researcher"]


def test_cells_share_names_and_keep_what_they_show(notebooks, tmp_path):
    notebook = of_cells("a = 2\nprint(a)", "a + 3", "open('x', 'w').close()")
    notebooks.run(notebook, tmp_path)
    texts = [["".join(o["text"]) for o in c["outputs"]] for c in notebook["cells"][1:]]
    assert texts == [["2\n"], ["5\n"], []]
    assert (tmp_path / "x").is_file()
    page = notebooks.markdown(notebook, "x.ipynb")
    assert "```python\na + 3\n```\n\n```text\n5\n```" in page


def test_a_failing_cell_and_a_failing_command_are_seen(notebooks, tmp_path):
    with pytest.raises(ZeroDivisionError):
        notebooks.run(of_cells("1 / 0"), tmp_path)
    with pytest.raises(RuntimeError, match="nothing-like-this"):
        notebooks.run(of_cells("!tstar nothing-like-this"), tmp_path)


def test_a_figure_becomes_a_picture(notebooks, tmp_path):
    pytest.importorskip("matplotlib")
    source = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])"
    notebook = of_cells(source)
    notebooks.run(notebook, tmp_path)
    assert "data:image/png;base64,iVBOR" in notebooks.markdown(notebook, "x.ipynb")
