"""Networks of torchvision, timm and transformers by name, with a new output layer of K classes.

The libraries are imported on use; each comes with the extra of its name (torchvision's: ``vision``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tstar.data.limits import fetched
from tstar.errors import TstarError, require, unknown

_WHERE = (
    "Check the name; weights and configurations that are not on this machine need a network connection, or a "
    "local folder."
)
_TOGETHER = 64  # texts of similar length that are measured at once


def build(
    library: str,
    name: str,
    num_classes: int,
    num_features: int | None,
    in_channels: int,
    pretrained: bool,
) -> nn.Module:
    """The network ``name`` of ``library``, checked against the ``num_features`` that was asked for."""
    makers: dict[str, Callable[[str, int, int, bool], nn.Module]] = {
        "torchvision": _torchvision,
        "timm": _timm,
        "transformers": _transformers,
    }
    model = makers[library](name, num_classes, in_channels, pretrained)
    if num_features is not None:
        from tstar.surgery.finding import find_head

        found = find_head(model).num_features
        if found != num_features:
            raise TstarError(
                f"{library}/{name} has {found} features, but got num_features={num_features}; leave "
                "num_features out, or use a network of this package, whose width can be chosen."
            )
    return model


def _torchvision(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    models = require("torchvision.models", "vision")
    known = models.list_models(module=models)
    if name not in known:
        raise unknown("network of torchvision", name, known, "torchvision.models.list_models()")
    _three_channels("torchvision", name, in_channels)
    # Two old networks warn about their slow initialization, and have a second, auxiliary output.
    quiet = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    auxiliary = {"aux_logits": False} if quiet else {}
    if not pretrained:
        model: nn.Module = models.get_model(name, num_classes=num_classes, **quiet, **auxiliary)
        return model
    model = fetched(
        lambda: models.get_model(name, weights="DEFAULT"), f"torchvision/{name}", _WHERE
    )
    if auxiliary:
        raise TstarError(
            f"torchvision/{name} has two outputs when pretrained, which is not supported; use "
            f"timm/{name}."
        )
    return _replace_output(model, num_classes)


def _timm(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    timm = require("timm", "timm")
    plain = name.partition(".")[0]  # resnet50.a1_in1k: architecture and weights
    if not timm.is_model(plain) and not name.startswith("hf_hub:"):
        raise unknown("network of timm", plain, timm.list_models(), "timm.list_models()")
    model: nn.Module = fetched(
        lambda: timm.create_model(
            name, pretrained=pretrained, num_classes=num_classes, in_chans=in_channels
        ),
        f"timm/{name}",
        _WHERE,
    )
    return model


def _transformers(name: str, num_classes: int, in_channels: int, pretrained: bool) -> nn.Module:
    """From a local folder's configuration, else from the hub's. Weights only if ``pretrained``."""
    transformers = require("transformers", "transformers")
    local = Path(name).expanduser()
    source = str(local) if local.is_dir() else name

    def make() -> nn.Module:
        config = transformers.AutoConfig.from_pretrained(source, num_labels=num_classes)
        images = getattr(config, "num_channels", None) is not None
        if images and config.num_channels != in_channels and pretrained:
            raise TstarError(
                f"transformers/{name} takes {config.num_channels} channels, but got "
                f"in_channels={in_channels}; repeat or drop channels, or train it from scratch."
            )
        if images:
            config.num_channels = in_channels
        auto = (
            transformers.AutoModelForImageClassification
            if images
            else transformers.AutoModelForSequenceClassification
        )
        if pretrained:
            with _quiet(transformers.utils.logging):
                model: nn.Module = auto.from_pretrained(
                    source, config=config, ignore_mismatched_sizes=True
                )
        else:
            model = auto.from_config(config)
        return model

    model = fetched(make, f"transformers/{name}", _WHERE)
    config: Any = model.config
    padding = getattr(config, "pad_token_id", None)
    if padding is None or getattr(config, "num_channels", None) is not None:
        return Logits(model)
    return TokenLogits(model, int(padding))


@contextmanager
def _quiet(log: Any) -> Iterator[None]:
    """Without transformers' progress bar and its report that the output layer is new, as it must be."""
    verbosity, bar = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bar:
            log.enable_progress_bar()


def _replace_output(model: nn.Module, num_classes: int) -> nn.Module:
    """A new linear output layer of ``num_classes``, initialized as torch does."""
    from tstar.surgery.finding import find_head
    from tstar.surgery.layers import replaced

    old: Any = find_head(model).layer
    new: nn.Module
    if isinstance(old, nn.Conv2d):
        new = nn.Conv2d(old.in_channels, num_classes, old.kernel_size, bias=old.bias is not None)  # type: ignore[arg-type]
    else:
        new = nn.Linear(old.in_features, num_classes, bias=old.bias is not None)
    return replaced(model, old, new)


def _three_channels(library: str, name: str, in_channels: int) -> None:
    if in_channels != 3:
        raise TstarError(
            f"{library}/{name} takes 3 input channels, but got in_channels={in_channels}; repeat gray "
            f"images, or use timm/{name}, whose first layer can be chosen."
        )


class Logits(nn.Module):
    """A transformers model whose ``forward`` returns its logits alone, as every trainer expects."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.model(*inputs, **named).logits


class TokenLogits(Logits):
    """The logits of token ids (N×L, filled up with ``padding`` on the right) alone.

    The attention mask is 1 where the id is not ``padding``, and columns in which every sample is
    padding are left out. When measuring, texts of similar length go together. Neither changes
    anything but the time (and the last bits).
    """

    def __init__(self, model: nn.Module, padding: int):
        super().__init__(model)
        self.padding = padding

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if len(inputs) != 1 or named:
            return super().forward(*inputs, **named)
        mask = inputs[0] != self.padding
        mask[:, 0] = True  # a text without tokens still is a sample
        if self.training or len(mask) <= _TOGETHER:
            return self._trimmed(inputs[0], mask)
        order = mask.sum(1).argsort(stable=True)
        sorted_logits = [
            self._trimmed(inputs[0][rows], mask[rows]) for rows in order.split(_TOGETHER)
        ]
        return torch.cat(sorted_logits)[order.argsort()]

    def _trimmed(self, ids: Tensor, mask: Tensor) -> Any:
        length = int(mask.any(0).nonzero().max()) + 1
        return super().forward(ids[:, :length], attention_mask=mask[:, :length].long())
