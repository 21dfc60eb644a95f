"""Scripts as users write them: each trains and folds exactly, warns, or is refused with the sentence in its header."""

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import tstar
from benchmarks.scripts import TABLE, Script, read_scripts, rows
from tstar.output_layer import tempered_heads

FOLDER = Path(__file__).parent
SCRIPTS = read_scripts(FOLDER)


def run(script: Script) -> dict:
    """The script's names after it ran, as ``python script.py`` would run it."""
    if "accelerate" in sys.modules:  # it keeps one state per process
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state(reset_partial_state=True)
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(script.path), run_name="__main__")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.filterwarnings("default")  # the trainers' own warnings are not ours
@pytest.mark.parametrize(
    "script",
    [pytest.param(s, id=s.path.stem, marks=pytest.mark.slow if s.slow else ()) for s in SCRIPTS],
)
def test_it_does_what_its_header_says(script: Script) -> None:
    for package in script.packages:
        pytest.importorskip(package)
    assert script.sentence or script.outcome in ("folds", "trains")
    if script.outcome == "refuses":
        with pytest.raises(tstar.TstarError, match=script.sentence):
            run(script)
    elif script.outcome == "warns":
        with pytest.warns(tstar.TstarWarning, match=script.sentence):
            run(script)
    elif script.outcome == "prints":
        done = subprocess.run(
            [sys.executable, str(script.path)],
            capture_output=True,
            encoding="utf-8",
            timeout=1200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert script.sentence in done.stdout
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error", tstar.TstarWarning)
            names = run(script)
        assert names["accuracy"] > 0.7
        if script.outcome == "folds":
            check_folded(names["model"], names["plain"], names["x"])


def check_folded(model: torch.nn.Module, plain: torch.nn.Module, x: torch.Tensor) -> None:
    """The plain architecture gives the tempered logits."""
    assert tempered_heads(model)
    assert not tempered_heads(plain)
    with torch.no_grad():
        both = [logits(m.eval()(x)) for m in (model, plain)]
    torch.testing.assert_close(*both, rtol=1e-4, atol=1e-5)


def logits(output):
    return getattr(output, "logits", output)


def test_the_table_in_the_docs_is_of_these_scripts() -> None:
    written = TABLE.read_text(encoding="utf-8").splitlines()
    assert [line for line in written if line.startswith("| ")][1:] == rows(SCRIPTS)
    assert re.search(r"With .*torch \d", "\n".join(written))
