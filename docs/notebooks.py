"""The tutorials: notebooks that are run here, and shown on the site with what they printed.

    python docs/notebooks.py docs/tutorials/*.ipynb     runs them and keeps their outputs

A notebook is JSON; what the site and the tests need of it is small, so that no Jupyter is needed. A line ``!tstar …`` runs
the command, as it does in Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def run(notebook: dict[str, Any], where: Path) -> None:
    """Run the code cells in order in the folder ``where``, and replace their outputs by what they show."""
    names: dict[str, Any] = {"__name__": "notebook", "_command": _command}
    before = Path.cwd()
    os.chdir(where)
    try:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = _outputs("".join(cell["source"]), names)
    finally:
        os.chdir(before)


def _outputs(source: str, names: dict[str, Any]) -> list[Cell]:
    """What a cell prints, the value of its last expression, and the figures that it leaves open."""
    lines = [
        f"_command({line[1:]!r})" if line.startswith("!") else line for line in source.splitlines()
    ]
    tree = ast.parse("\n".join(lines))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                print(value)
    shown = []
    if text := out.getvalue():
        stream = {"output_type": "stream", "name": "stdout"}
        shown.append({**stream, "text": text.splitlines(keepends=True)})
    return shown + [_picture(figure) for figure in _figures()]


def _command(line: str) -> None:
    program, *words = shlex.split(line)
    if program != "tstar":
        raise ValueError(f"Only tstar's commands run in a tutorial, got {program}.")
    done = subprocess.run(
        [sys.executable, "-m", "tstar", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )
    if done.returncode:
        raise RuntimeError(f"{line}\n{done.stderr}")
    print(done.stdout, end="")


def _figures() -> list[Any]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    found = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return found


def _picture(figure: Any) -> Cell:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    data = {"image/png": base64.b64encode(file.getvalue()).decode()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def markdown(notebook: dict[str, Any], download: str) -> str:
    """The page: its text, its code, and below each cell what it showed."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        shell = all(line.startswith("!") for line in source.splitlines())
        code = source.replace("!", "$ ") if shell else source
        parts.append(f"```{'console' if shell else 'python'}\n{code}\n```")
        for output in cell["outputs"]:
            if "text" in output:
                parts.append("```text\n" + "".join(output["text"]).rstrip() + "\n```")
            else:
                parts.append(f"![](data:image/png;base64,{output['data']['image/png']})")
    parts.insert(1, f"*This page is a [notebook]({download}): download it, and run it yourself.*")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for name in sys.argv[1:]:
        notebook = read(Path(name))
        with tempfile.TemporaryDirectory() as scratch:
            run(notebook, Path(scratch))
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        Path(name).write_text(text, encoding="utf-8")
        print(name)
