"""The tutorials: notebooks that nbclient runs, and the site shows with what they printed.

python docs/notebooks.py docs/tutorials/*.ipynb     runs them and keeps their outputs
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def run(path: Path, where: Path) -> Any:
    """The notebook after its cells ran in order in the folder ``where``."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": programs, "COLUMNS": "100"}
    env.pop("MPLBACKEND", None)  # pictures are shown, whatever the caller draws with
    resources = {"metadata": {"path": str(where)}}
    patient = {"timeout": 3600, "startup_timeout": 600}  # seconds, on a loaded machine
    options = {**patient, "resources": resources, "coalesce_streams": True}
    NotebookClient(notebook, **options).execute(env=env)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the time of each run
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = still(output["text"])
    return notebook


def still(text: str) -> str:
    """What a terminal shows in the end: without lines that were wiped, and without colors."""
    kept = re.sub(r"[^\n]*\n\x1b\[1A(?=\x1b\[2K)", "", text.replace("\r\n", "\n"))
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]|[^\n]*\r", "", kept)


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
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"]).strip()
                parts.append(f"![](data:image/png;base64,{picture})")
            else:
                text = "".join(output.get("text") or data["text/plain"])
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.insert(1, f"*This page is a [notebook]({download}): download it, and run it yourself.*")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    import nbformat

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            nbformat.write(run(Path(name), Path(scratch)), name)
        print(name)
