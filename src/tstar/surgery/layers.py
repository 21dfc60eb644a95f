"""Which layers can be output layers: linear ones, and convolutions of kernel size 1. And which norms can stand before one."""

from __future__ import annotations

from torch import Tensor, nn

from tstar.errors import TstarError


class ChannelNorm(nn.LayerNorm):
    """Layer normalization over the channels of (B, C, …), at every position."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.movedim(1, -1)).movedim(-1, 1)


def replaced(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """``model`` with every place that holds ``old`` holding ``new``; ``new`` itself if ``old`` is the model."""
    if old is model:
        return new
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):  # named_children() skips aliases
            if child is old and parent is not new:
                setattr(parent, name, new)
    return model


def weight_of(layer: nn.Module) -> Tensor:
    weight = layer.weight
    assert isinstance(weight, Tensor)
    return weight


def class_dim(layer: nn.Module) -> int:
    """The axis of the classes (and of the features): last for a linear layer, 1 for a convolution."""
    return -1 if isinstance(layer, nn.Linear) else 1


def is_output_layer(module: nn.Module) -> bool:
    """Whether a module is of a kind that an output layer has: linear, or a convolution of kernel size 1."""
    if isinstance(module, nn.Linear):
        return True
    return isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and (
        set(module.kernel_size) == {1}
        and set(module.stride) == {1}
        and module.groups == 1
        and (isinstance(module.padding, str) or not any(module.padding))
    )


def is_frozen_norm(norm: nn.Module) -> bool:
    """Whether it is a batch norm that a helper has frozen: torchvision's, timm's and detectron2's class have one name."""
    return type(norm).__name__ == "FrozenBatchNorm2d"


def check_norm(norm: nn.Module) -> None:
    """Refuse what was put in the place of the batch norm before an output layer and cannot fold."""
    if not (isinstance(norm, nn.modules.batchnorm._BatchNorm) or is_frozen_norm(norm)):
        raise TstarError(
            f"The norm before the output layer must be a batch norm, got {type(norm).__name__}, which something put in its "
            "place after tempering. Replace the model's norms before you temper, or temper with norm='layer' or norm=None."
        )


def check_layer(layer: nn.Module) -> None:
    """Refuse, with the reason, what cannot be normalized before, divided after and folded."""
    kind = type(layer).__name__
    if not is_output_layer(layer):
        quantized = "quantized" in type(layer).__module__
        way_out = (
            "Temper and train in floating point, fold, and quantize the folded model."
            if quantized
            else "Pass head='path.of.the.layer' to name another one."
        )
        raise TstarError(
            f"The output layer must be an nn.Linear or a convolution of kernel size 1, got {kind}. {way_out}"
        )
    if (
        nn.utils.parametrize.is_parametrized(layer)
        or hasattr(layer, "weight_g")
        or hasattr(layer, "weight_orig")
    ):
        raise TstarError(
            f"The output layer's weight must be a plain parameter, got a {kind} whose weight is computed from "
            "others (weight norm, spectral norm, pruning, …), which leaves nothing to fold into. Remove the "
            "parametrization first (torch.nn.utils.parametrize.remove_parametrizations, prune.remove)."
        )
    weight = weight_of(layer)
    if isinstance(weight, nn.UninitializedParameter):
        raise TstarError(
            f"The output layer must be initialized, got a {kind}; run one batch through the model first."
        )
    if not weight.is_floating_point():
        raise TstarError(
            f"The output layer must be in floating point, got {kind} with {weight.dtype} weights. Temper and "
            "train in floating point, fold, and quantize the folded model."
        )
    if weight.shape[0] < 2:
        raise TstarError(
            "The output layer must give one logit per class for at least two classes, got a single logit: a "
            "softmax over one logit is constant. Use two logits, or do not temper."
        )
