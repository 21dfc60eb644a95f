"""The output layer as a library declares it: timm's ``get_classifier``."""

from __future__ import annotations

from typing import Any

from torch import nn

from tstar.surgery.layers import is_output_layer


def declared_heads(model: nn.Module) -> tuple[str, ...]:
    """The paths of the output layers that a timm model declares, if they are of a kind that can be tempered."""
    if not (callable(getattr(model, "get_classifier", None)) and hasattr(model, "num_classes")):
        return ()
    declared = model.get_classifier()  # type: ignore[operator]
    given = list(declared) if isinstance(declared, list | tuple) else [declared]
    layers = [_inside(layer, model.num_classes) for layer in given]
    paths = {module: path for path, module in model.named_modules()}
    if not all(layer in paths and is_output_layer(layer) for layer in layers):
        return ()
    # Another layer with as many outputs may add to the logits (VOLO's auxiliary head): a run will tell.
    widths = {_outputs(layer) for layer in layers}
    rivals = [m for m in paths if is_output_layer(m) and m not in layers and _outputs(m) in widths]
    return () if rivals else tuple(paths[layer] for layer in layers)


def _inside(declared: Any, classes: object) -> Any:
    """The only layer, with K outputs, in what was declared (pooling, dropout and a layer, say), or the whole.

    It spares a run on the declared input, which for SAM's encoder takes a minute and gigabytes.
    """
    if not isinstance(declared, nn.Module):
        return None
    layers = [module for module in declared.modules() if is_output_layer(module)]
    return layers[0] if len(layers) == 1 and _outputs(layers[0]) == classes else declared


def _outputs(layer: nn.Module) -> int:
    return int(layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels)  # type: ignore[arg-type]
