"""The tutorials run from the first cell to the last, and are shown as they are."""

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


def kinds(notebook):
    """Of each cell, the kinds of its outputs; how a program's lines are cut is the machine's."""
    cells = ([o["output_type"] for o in cell.get("outputs", [])] for cell in notebook["cells"])
    return [[kind for kind in found if kind != "stream"] for found in cells]


def advice(notebook):
    """What is printed of advice: the same on every machine, until the advice changes."""
    printed = ("".join(o.get("text", "")) for c in notebook["cells"] for o in c.get("outputs", []))
    return [text.split() for text in printed if text.startswith("Do this:")]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as in a user's session
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, notebooks, tmp_path):
    for needed in ("nbclient", "ipykernel", "sklearn", "pandas", "scipy", "matplotlib"):
        pytest.importorskip(needed)
    now, kept = notebooks.run(path, tmp_path), notebooks.read(path)
    again = f"run python docs/notebooks.py {path.relative_to(ROOT)}"
    assert (kinds(now), advice(now)) == (kinds(kept), advice(kept)), again


def test_there_are_two():
    assert [path.stem for path in TUTORIALS] == ["practitioner", "researcher"]


def test_the_page_has_code_commands_text_and_pictures(notebooks):
    shown = [
        {"output_type": "stream", "text": ["2\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "5"}},
        {"output_type": "display_data", "data": {"image/png": "iVBOR\n", "text/plain": "<Figure>"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["a + 3"], "outputs": shown},
        {"cell_type": "code", "source": ["!tstar --help"], "outputs": []},
    ]
    page = notebooks.markdown({"cells": cells}, "x.ipynb")
    assert "```python\na + 3\n```\n\n```text\n2\n```\n\n```text\n5\n```" in page
    assert page.count("data:image/png;base64,iVBOR)") == 1
    assert "<Figure>" not in page
    assert "```console\n$ tstar --help\n```" in page


def test_a_bar_that_was_wiped_is_not_shown(notebooks):
    printed = "\x1b[2Kfirst\r\n\x1b[2K ━━ 1/2\r\x1b[2K ━━ 2/2\r\n\x1b[1A\x1b[2K\x1b[1mdone\x1b[0m\n"
    assert notebooks.still(printed) == "first\ndone\n"
