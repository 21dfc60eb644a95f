"""``tstar fold``: from a saved tempered state dict to the plain architecture's, without the model's code."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tstar.cli.app import USE, app
from tstar.cli.options import AsJson
from tstar.cli.printing import tell_json
from tstar.errors import TstarError, require

if TYPE_CHECKING:
    from torch import Tensor


@app.command(rich_help_panel=USE)
def fold(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="The state dict of a tempered model: .pt, .pth, .bin or .safetensors."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; NAME.folded.SUFFIX by default."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="The entry of the file that holds the state dict, if there are several."),
    ] = None,
    allow_bias: Annotated[
        bool,
        typer.Option(
            "--allow-bias", help="Add a bias to an output layer that has none (one new key)."
        ),
    ] = False,
    eps: Annotated[float, typer.Option(help="ε of the inserted norm, if you changed it.")] = 1e-5,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the output if it exists.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fold a saved tempered model into the plain architecture's weights.

    Example: tstar fold checkpoint.pt -o plain.pt
    """
    from tstar.surgery.checkpoints import find_state_dict, fold_state_dict, tempered_prefixes

    target = output or checkpoint.with_name(f"{checkpoint.stem}.folded{checkpoint.suffix}")
    if target.exists() and not force:
        raise TstarError(f"{target} exists already; pass --force to overwrite it.")
    saved, metadata = _load(checkpoint)
    state = find_state_dict(saved, key)
    plain = fold_state_dict(state, eps=eps, allow_bias=allow_bias)
    _save(plain, target, metadata)
    prefixes = tempered_prefixes(state)
    temperatures = {p.rstrip("."): float(state[f"{p}temperature"]) for p in prefixes}
    added = [f"{p}bias" for p in prefixes if f"{p}bias" in plain and f"{p}layer.bias" not in state]
    if as_json:
        told = {"output": str(target), "temperatures": temperatures}
        tell_json({**told, "keys": len(plain), "added": added})
        return
    for head, value in temperatures.items():
        typer.echo(f"folded {head or 'the output layer'} (T = {value:.4g})")
    for name in added:
        typer.echo(
            f"added {name}, which the original architecture does not have (from_pretrained drops it: load "
            "with tstar.load_folded)"
        )
    typer.echo(f"wrote {target} ({len(plain)} tensors)")


def _load(path: Path) -> tuple[Any, dict[str, str]]:
    """What a file holds, and its metadata. Only tensors and plain types are read; nothing is unpickled."""
    import torch

    if not path.is_file():
        raise TstarError(f"No checkpoint found at {str(path)!r}; check the path.")
    if path.suffix == ".safetensors":
        safetensors = require("safetensors", "transformers")
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except Exception as error:  # the parser's own, of whatever kind
            raise TstarError(f"{path} is not a readable safetensors file: {error}.") from error
    try:
        return torch.load(path, map_location="cpu", weights_only=True), {}
    except Exception as error:  # the parser's own: a damaged archive raises a dozen kinds
        what = (
            "holds a whole model or other Python objects"
            if zipfile.is_zipfile(path) and isinstance(error, pickle.UnpicklingError)
            else "is damaged or not a file of weights"
        )
        raise TstarError(
            f"{path} {what}; only tensors and plain types are read, and nothing is unpickled. Save the weights "
            "alone, with torch.save(model.state_dict(), …)."
        ) from error


def _save(state: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write beside the target, then put it in place: the target may be the file that the tensors are mapped from."""
    import torch

    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.suffix == ".safetensors":
            require("safetensors", "transformers")
            from safetensors.torch import save_file

            from tstar.surgery.checkpoints import tensors_of

            save_file(tensors_of(state), part, metadata={"format": "pt"} | metadata)
        else:
            torch.save(state, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
