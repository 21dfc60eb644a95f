"""Networks of torchvision, timm and transformers by name, with a new output layer of K classes.

The libraries are imported on use; each comes with the extra of its name (torchvision: ``vision``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from tstar.errors import TstarError, guarded, unknown
from tstar.head import replaced
from tstar.imports import require
from tstar.output_layer import find_head


def build(
    library: str,
    name: str,
    num_classes: int,
    num_features: int | None,
    in_channels: int,
    pretrained: bool,
) -> nn.Module:
    """The network ``name`` of ``library``; a ``num_features`` that is given must be its own."""
    make = {"torchvision": _torchvision, "timm": _timm, "transformers": _transformers}[library]
    with guarded(
        f"{library}/{name} could not be made; check the name; what is not on this machine needs a "
        "network connection or a local folder"
    ):
        model = make(name, num_classes, in_channels, pretrained)
    if num_features is not None and (found := find_head(model).num_features) != num_features:
        raise TstarError(
            f"{library}/{name} has {found} features, but got num_features={num_features}; "
            "leave it out, or use a network of this package, whose width can be chosen."
        )
    return model


def _torchvision(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    models = require("torchvision.models", "vision")
    known = models.list_models(module=models)
    if name not in known:
        raise unknown("network of torchvision", name, known, "torchvision.models.list_models()")
    if in_channels != 3:
        raise TstarError(
            f"torchvision/{name} takes 3 input channels, but got in_channels={in_channels}; repeat "
            f"gray images, or use timm/{name}, whose first layer can be chosen."
        )
    if pretrained:
        return _replace_output(models.get_model(name, weights="DEFAULT"), num_classes)
    model: nn.Module = models.get_model(name, num_classes=num_classes)
    return model


def _timm(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    timm = require("timm", "vision")
    plain = name.partition(".")[0]  # resnet50.a1_in1k: architecture and weights
    if not timm.is_model(plain) and not name.startswith("hf_hub:"):
        raise unknown("network of timm", plain, timm.list_models(), "timm.list_models()")
    model: nn.Module = timm.create_model(
        name, pretrained=pretrained, num_classes=num_classes, in_chans=in_channels
    )
    return model


def _transformers(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    """A classifier of text, from a local folder's configuration or the hub's."""
    transformers = require("transformers", "text")
    local = Path(name).expanduser()
    source = str(local) if local.is_dir() else name
    config = transformers.AutoConfig.from_pretrained(source, num_labels=num_classes)
    auto = transformers.AutoModelForSequenceClassification
    if pretrained:
        model = auto.from_pretrained(source, config=config, ignore_mismatched_sizes=True)
        return TokenLogits(model)
    return TokenLogits(auto.from_config(config))


def _replace_output(model: nn.Module, num_classes: int) -> nn.Module:
    """A new linear output layer of ``num_classes``, initialized as torch does."""
    old: Any = find_head(model).layer
    bias = old.bias is not None
    if isinstance(old, nn.Conv2d):
        new: nn.Module = nn.Conv2d(old.in_channels, num_classes, old.kernel_size, bias=bias)  # type: ignore[arg-type]
    else:
        new = nn.Linear(old.in_features, num_classes, bias=bias)
    return replaced(model, old, new)


class TokenLogits(nn.Module):
    """The logits alone, as every trainer expects, of token ids (N×L, padded on the right).

    Padding is masked, and columns of padding alone are left out.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model, self.padding = model, getattr(model.config, "pad_token_id", None)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if len(inputs) == 1 and not named and self.padding is not None:
            mask = inputs[0] != self.padding
            mask[:, 0] = True  # a text without tokens still is a sample
            length = int(mask.any(0).nonzero().max()) + 1
            named = {"attention_mask": mask[:, :length].long()}
            inputs = (inputs[0][:, :length],)
        return self.model(*inputs, **named).logits
