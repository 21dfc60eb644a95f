"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def about(text: str, *names: str, **more: Any) -> Any:
    """An option and what it is; its name follows from the parameter, unless it is given."""
    return typer.Option(*names, help=text, **more)


def given(text: str) -> Any:
    """An argument, which has no name."""
    return typer.Argument(help=text)


def with_fields(record: type, *names: str, **defaults: Any) -> Callable[..., Any]:
    """The command with an option for fields of a record, all or some, in place of its ``**``."""
    kinds = get_type_hints(record)
    added = []
    for item in (item for item in fields(record) if not names or item.name in names):
        kind: Any = kinds[item.name]
        words = (f"--{item.name.replace('_', '-')}",) if kind is bool else ()  # no --no-…
        meaning = item.metadata["meaning"]
        option = Annotated[kind, about(f"{meaning[0].upper()}{meaning[1:]}.", *words)]
        default = defaults.get(item.name, item.default)
        where = inspect.Parameter.POSITIONAL_OR_KEYWORD
        added.append(inspect.Parameter(item.name, where, default=default, annotation=option))

    def changed(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        *first, last = [option for option in own if option.kind is not option.VAR_KEYWORD]
        signature = inspect.Signature([*first, *added, last])
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return changed


DATA = "Name of a data set, image folder, .npz file or CSV file of text."
Data = Annotated[str, about(DATA)]
DataName = Annotated[str, given(DATA)]
DataRoot = Annotated[Path | None, about("Folder of data sets; $TSTAR_DATA or ~/.cache/tstar.")]
Size = Annotated[int | None, about("Resize images to SIZE×SIZE pixels.")]
Model = Annotated[str, about("resnet10, torchvision/…, timm/…, transformers/…, ./file.py:f")]
Features = Annotated[int | None, about("M, the features of a network of adjustable width.")]
Head = Annotated[str | None, about("Path of the output layer, if tstar does not find it.")]
Device = Annotated[str, about("Device: auto, cpu, cuda, …; an error if there is none.")]
Seed = Annotated[int, about("Seed of random draws.")]
Store = Annotated[Path, given("The SQLite file of results.")]
Runs = Annotated[Path, given("A store of runs: .db, .parquet or .csv.")]
Metric = Annotated[str, about("Which accuracy: val, or test as in the paper.")]
Where = Annotated[
    str | None, about("Only runs that meet a condition: 'model == \"vgg9\" and lr == 0.1'.")
]
OfStudy = Annotated[str | None, about("Only runs that this study asks for.", "--study")]
Output = Annotated[Path, about("The file or folder to write.", "--output", "-o")]
MaybeOutput = Annotated[Path | None, about("The file to write.", "--output", "-o")]
AsJson = Annotated[bool, about("Print JSON.", "--json")]
