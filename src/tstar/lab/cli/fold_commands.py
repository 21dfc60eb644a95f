"""``tstar fold``: from a saved tempered state dict to the plain architecture's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tstar.errors import TstarError
from tstar.imports import require
from tstar.lab.cli.app import USE, app
from tstar.lab.cli.options import AsJson, MaybeOutput, about, given
from tstar.lab.cli.terminal import tell_json
from tstar.lab.files import written

if TYPE_CHECKING:
    from torch import Tensor


@app.command(rich_help_panel=USE)
def fold(
    checkpoint: Annotated[
        Path, given("State dict of a tempered model: .pt, .pth, .bin, .safetensors.")
    ],
    output: MaybeOutput = None,
    key: Annotated[str | None, about("The entry that holds the state dict, if several do.")] = None,
    allow_bias: Annotated[
        bool, about("Add a bias to a head that has none.", "--allow-bias")
    ] = False,
    eps: Annotated[float, about("ε of the inserted norm, if you changed it.")] = 1e-5,
    force: Annotated[bool, about("Overwrite the output if it exists.", "--force")] = False,
    as_json: AsJson = False,
) -> None:
    """Fold a saved tempered model into the plain architecture's weights.

    The default output is NAME.folded.SUFFIX beside the checkpoint.

    Example: tstar fold checkpoint.pt -o plain.pt
    """
    from tstar.lab.checkpoints import fold_state_dict, tempered_prefixes

    saved, metadata = _load(checkpoint)
    target = output or checkpoint.with_name(f"{checkpoint.stem}.folded{checkpoint.suffix}")
    if target.exists() and not (force and target.is_file()):
        raise TstarError(
            f"{target} exists already; pass --force to overwrite it."
            if target.is_file()
            else f"{target} must be the path of a file."
        )
    state = find_state_dict(saved, key)
    plain = fold_state_dict(state, eps=eps, allow_bias=allow_bias)
    whole: dict[str, Any] = plain
    if "pytorch-lightning_version" in saved:  # what belongs to the tempered parameters goes
        whole = {**saved, "state_dict": plain, "optimizer_states": [], "lr_schedulers": []}
    _save(whole, target, metadata, checkpoint.stat().st_mode & 0o777)
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
            f"added {name}, which the original architecture does not have (from_pretrained drops "
            "it: load with tstar.load_folded)"
        )
    typer.echo(f"wrote {target} ({len(plain)} tensors)")


def find_state_dict(saved: Any, key: str | None = None) -> Mapping[str, Tensor]:
    """The tempered state dict in what a trainer saved: itself, or the entry that is one."""
    from tstar.lab.checkpoints import tempered_prefixes

    found = saved.get(key) if key is not None and isinstance(saved, Mapping) else saved
    if not isinstance(found, Mapping):
        has = f"; the checkpoint has {list(saved)}" if isinstance(saved, Mapping) else ""
        raise TstarError(
            "A checkpoint, or its entry --key, must be a state dict, or a dict that holds one, got "
            f"{type(found).__name__}{has}."
        )
    if key is not None or tempered_prefixes(found):
        return found
    inside = [k for k, v in found.items() if isinstance(v, Mapping) and tempered_prefixes(v)]
    if len(inside) > 1:
        raise TstarError(
            f"Found {len(inside)} tempered state dicts ({inside}); pass --key to choose one."
        )
    return found[inside[0]] if inside else found


def _load(path: Path) -> tuple[Any, dict[str, str]]:
    """What a file holds, and its metadata."""
    from tstar.lab.checkpoints import read_tensors

    if path.is_dir():
        raise TstarError(
            f"{str(path)!r} is a folder; name the file in it, such as "
            f"{str(path / 'model.safetensors')!r}."
        )
    if not path.is_file():
        raise TstarError(f"No checkpoint found at {str(path)!r}; check the path.")

    try:
        return read_tensors(path)
    except TstarError:
        raise
    except Exception as error:  # in our words: torch's advise to unpickle
        raise TstarError(
            f"{path} is damaged, or holds other objects than weights; only tensors and plain types "
            "are read, and nothing is unpickled. Save the weights alone, with "
            "torch.save(model.state_dict(), …)."
        ) from error


def _save(state: dict[str, Any], path: Path, metadata: dict[str, str], mode: int) -> None:
    """Write beside the target, then put it in place: the tensors may be mapped from it."""
    import torch

    with written(path) as part:
        part.touch(0o600)  # before there is anything to read in it
        if path.suffix == ".safetensors":
            require("safetensors", "text")
            from safetensors.torch import save_file

            # Each with memory of its own, as the format wants it.
            own = {name: value.detach().clone().contiguous() for name, value in state.items()}
            save_file(own, part, metadata={"format": "pt"} | metadata)
        else:
            torch.save(state, part)
        part.chmod(mode)
