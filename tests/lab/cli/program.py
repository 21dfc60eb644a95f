"""A command that fails in every way."""

import warnings
from pathlib import Path

from tstar.errors import TstarError


def faulty(kind: str) -> None:
    match kind:
        case "key":
            _ = {}["absent"]
        case "file":
            Path("/nowhere/to/be found").read_text(encoding="utf-8")
        case "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.datasets")
        case "ours":
            raise TstarError("T must be positive, got -1.")
        case "markup":
            raise RuntimeError("a [bold]list[/] of\n[1, 2]")
        case "interrupt":
            raise KeyboardInterrupt
        case "warning":
            warnings.warn("mind\nthe step", UserWarning, stacklevel=1)
        case "exit":
            raise SystemExit(7)
