"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Size = Annotated[int | None, typer.Option(help="Resize images to SIZE×SIZE pixels.")]
Features = Annotated[
    int | None,
    typer.Option(
        help="M, the width of the output layer's input, for a network of adjustable width."
    ),
]
Model = Annotated[
    str,
    typer.Option(
        help="Network: resnet10, torchvision/NAME, timm/NAME, transformers/NAME, or your own (./file.py:name)."
    ),
]
Head = Annotated[
    str | None,
    typer.Option(help="Path of the output layer, where it is not found or there are several."),
]
DATA = "Name of a data set, image folder, .npz file or CSV file of text."
Lr = Annotated[float, typer.Option(help="Highest learning rate.")]
Scenario = Annotated[str | None, typer.Option(help="How you train: scratch or finetune.")]
Tuned = Annotated[
    bool,
    typer.Option(
        "--tuned", help="Learning rate and weight decay were tuned for this model: they stay."
    ),
]
Metric = Annotated[str, typer.Option(help="Which accuracy: val, or test as in the paper.")]
Runs = Annotated[Path, typer.Argument(help="A store of runs: .db, .parquet or .csv.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder of the data sets; by default $TSTAR_DATA, else ~/.cache/tstar."),
]
Where = Annotated[
    str | None,
    typer.Option(help="Only runs for which this holds, such as 'model == \"vgg9\" and lr == 0.1'."),
]
OfStudy = Annotated[str | None, typer.Option("--study", help="Only runs that this study asks for.")]
# Where a result goes is --output, -o on every command; these are its older names, still understood.
OldOut = Annotated[Path | None, typer.Option("--out", hidden=True)]
OldPlot = Annotated[Path | None, typer.Option("--plot", hidden=True)]
OldFigure = Annotated[Path | None, typer.Option("--figure", hidden=True)]
