"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Where a result goes is --output, -o on every command; these are its older names, still understood.
OldOut = Annotated[Path | None, typer.Option("--out", hidden=True)]
OldPlot = Annotated[Path | None, typer.Option("--plot", hidden=True)]
OldFigure = Annotated[Path | None, typer.Option("--figure", hidden=True)]
