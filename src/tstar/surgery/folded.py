"""Load what ``fold(…, allow_bias=True)`` and ``save_pretrained`` wrote: the plain class, with the bias its head gained."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, require
from tstar.surgery.layers import is_output_layer, weight_of


def load_folded(model_class: Any, folder: str | Path, **options: Any) -> Any:
    """``model_class.from_pretrained(folder, **options)``, and the bias that folding added to the output layer.

    About half of transformers' sequence classifiers have an output layer without a bias, and BatchNorm's shift
    needs one. The class builds its head without it whatever the file holds, so that ``from_pretrained`` alone
    drops the bias (it reports the key as unexpected) and gives other logits. Where no bias was added this is
    ``from_pretrained``.

    Args:
        model_class: what you would call ``from_pretrained`` of, such as ``AutoModelForSequenceClassification``.
        folder: a local folder that ``save_pretrained`` wrote.
        options: passed to ``from_pretrained``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TstarError(
            f"folder must be a local one that save_pretrained wrote, got {str(folder)!r}; fetch a model of the "
            "Hub with huggingface_hub.snapshot_download first, which returns its folder."
        )
    biases = _biases(folder)
    model = model_class.from_pretrained(folder, **options)
    for key, bias in biases.items():
        layer = _bare_layer(model, key.removesuffix(".bias"), bias)
        if layer is not None:
            layer.bias = _beside(weight_of(layer), bias, key)
    return model


def warn_of_bias(model: nn.Module, paths: list[str]) -> None:
    """Say that ``from_pretrained`` will drop the biases which the layers at ``paths``, bare before, now have."""
    gained = [p for p in paths if getattr(model.get_submodule(p), "bias", None) is not None]
    if not gained or not hasattr(model, "save_pretrained"):
        return
    kind = type(model).__name__
    way_out = (
        "before saving, take the adapter in with merge_and_unload(); then load the saved folder with "
        "tstar.load_folded."
        if hasattr(model, "merge_and_unload")
        else f"after save_pretrained(folder), load with tstar.load_folded({kind}, folder)."
    )
    warnings.warn(
        f"The output layer {gained[-1]!r} gained a bias, which {kind}.from_pretrained drops, giving other logits: "
        f"{way_out}",
        TstarWarning,
        stacklevel=3,
    )


def _biases(folder: Path) -> dict[str, Tensor]:
    """Every tensor whose key ends in ``.bias``, from the one file or the several that an index names."""
    safetensors = require("safetensors", "transformers")
    names, index = {"model.safetensors"}, folder / "model.safetensors.index.json"
    if index.is_file():
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    biases: dict[str, Tensor] = {}
    for name in sorted(names):
        if not (folder / name).is_file():
            raise TstarError(f"No {name} found in {str(folder)!r}.")
        with safetensors.safe_open(folder / name, framework="pt") as file:
            keys = list(file.keys())
            if any(key.endswith(".temperature") for key in keys):
                raise TstarError(
                    f"{str(folder)!r} holds a tempered model, not a folded one; fold it with "
                    "tstar.fold before save_pretrained, or its file with the command 'tstar fold'."
                )
            biases |= {key: file.get_tensor(key) for key in keys if key.endswith(".bias")}
    return biases


def _bare_layer(model: nn.Module, path: str, bias: Tensor) -> nn.Module | None:
    """The output layer at ``path`` that has no bias and could have this one."""
    try:
        layer = model.get_submodule(path)
    except AttributeError:
        return None
    bare = is_output_layer(layer) and getattr(layer, "bias", None) is None
    return layer if bare and bias.shape == weight_of(layer).shape[:1] else None


def _beside(weight: Tensor, bias: Tensor, key: str) -> nn.Parameter:
    """The bias where the weight is, and in its dtype unless that is an integer one (quantized)."""
    if weight.is_meta:
        raise TstarError(
            f"The output layer must be in memory for {key} to be added, got one on the meta device (offloaded); "
            "load without device_map, or keep the output layer on a device."
        )
    dtype = weight.dtype if weight.is_floating_point() else bias.dtype
    return nn.Parameter(bias.to(weight.device, dtype), requires_grad=weight.requires_grad)
