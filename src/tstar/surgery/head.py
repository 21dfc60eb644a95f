"""The tempered head: BatchNorm → the model's own output layer → ÷T, and the algebra that folds it away."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, unknown
from tstar.numbers import positive
from tstar.surgery.folding import affine_of_norm, check_numbers, fold_affine
from tstar.surgery.layers import (
    ChannelNorm,
    check_layer,
    check_norm,
    is_frozen_norm,
    weight_of,
)

Norm = Literal["batch", "layer"]
_BATCH_NORM: dict[type[nn.Module], type[nn.modules.batchnorm._BatchNorm]] = {
    nn.Linear: nn.BatchNorm1d,
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
}


def usable(temperature: object) -> float:
    """A T that float32 can divide by."""
    T = positive("temperature", temperature)
    if not 1e-30 <= T <= 1e30:
        raise TstarError(f"temperature must lie between 1e-30 and 1e30, got {T:g}.")
    return T


def known_norm(norm: object) -> Norm | None:
    """A kind of norm that there is."""
    if norm is not None and not (isinstance(norm, str) and norm in ("batch", "layer")):
        raise unknown("norm", norm, ("batch", "layer", "None"))
    return norm  # type: ignore[return-value]


class TemperedHead(nn.Module):
    r"""z = (W·norm(h) + b) / T, the logits of a classifier that trains at temperature T.

    ``norm`` is a real ``nn.BatchNorm1d`` (2d or 3d for a 1×1-convolution head), so that SyncBatchNorm
    conversion, weight-decay filters and freezing find it. ``temperature`` is a buffer: saved in the state
    dict, moved by ``.to()``, and changeable in place by a schedule.

    Shapes: h is (B, M), (M,), (B, L, M) or (B, H, W, M) for a linear layer, normalized over all but the
    last axis; (B, M, H, W) for a convolution. A training batch with a single value for each feature has no
    variance: it is normalized with the running statistics, which it leaves unchanged, so that the last
    step of an epoch does not fail.

    Padded positions of a (B, L, M) input count in the statistics like any other, unless ``mask`` is set: a
    (B, L) tensor, nonzero where a position counts. :func:`tstar.surgery.padding.mask_padding` sets it at every step.

    Args:
        layer: the output layer, an ``nn.Linear`` or a convolution of kernel size 1.
        temperature: T > 0.
        norm: ``"batch"`` (the paper's), ``"layer"`` (LayerNorm on the features), or ``None``.
        backbone: c > 0, the scale of the gradient into the backbone: in training the gradient that reaches the
            features is multiplied by c·T. ``None`` leaves it as it is, so that it is divided by T (and, with
            BatchNorm, by the features' deviation). The logits are the same. A buffer, like T.
    """

    temperature: Tensor
    backbone: Tensor | None
    mask: Tensor | None
    stepped = False  # whether an optimizer was seen to train the head
    scheduled = False  # whether a schedule sets T
    _given: tuple[float, float | None] | None = None  # T and c, which a buffer on meta cannot hold

    def __init__(
        self,
        layer: nn.Module,
        temperature: float,
        norm: Norm | None = "batch",
        backbone: float | None = None,
    ) -> None:
        super().__init__()
        check_layer(layer)
        weight = weight_of(layer)
        placement: dict[str, Any] = {"device": weight.device, "dtype": weight.dtype}
        norm = known_norm(norm)
        self.norm: nn.Module | None = None
        if norm == "batch":
            kind = next(kind for kind in _BATCH_NORM if isinstance(layer, kind))
            self.norm = _BATCH_NORM[kind](weight.shape[1], **placement)
        elif norm == "layer":
            self.norm = nn.LayerNorm(weight.shape[1], **placement)
        self.layer = layer
        self.mask = None
        exact = weight.dtype if weight.dtype == torch.float64 else torch.float32
        T, c = usable(temperature), None if backbone is None else positive("backbone", backbone)
        value = torch.tensor(T, dtype=exact, device=weight.device)
        self.register_buffer("temperature", value)
        self.register_buffer("backbone", None if c is None else torch.full_like(value, c))
        self._given = T, c
        self.train(layer.training)

    def forward(self, features: Tensor) -> Tensor:
        if self.backbone is not None and self.training:
            features = scale_gradient(features, self.backbone * self.temperature)
        logits: Tensor = self.layer(self.normalize(features))
        return logits / self.temperature

    def normalize(self, h: Tensor) -> Tensor:
        """The features as the norm gives them to the layer."""
        norm = self.norm
        if norm is None:
            return h
        linear = isinstance(self.layer, nn.Linear)
        if isinstance(norm, nn.LayerNorm):
            return norm(h) if linear else norm(h.movedim(1, -1)).movedim(-1, 1)  # type: ignore[no-any-return]
        check_norm(norm)
        if self.mask is None or not norm.training:
            rows = h.reshape(-1, h.shape[-1]) if linear else h
            return batch_norm(norm, rows).reshape(h.shape)
        if not linear or self.mask.shape != h.shape[:-1]:
            raise TstarError(
                f"A mask must have the shape of the features without their last axis, got {tuple(self.mask.shape)} "
                f"for {tuple(h.shape)}."
            )
        kept = self.mask.bool()
        normed = torch.zeros_like(h)  # a masked position's logits are the bias over T
        normed[kept] = batch_norm(norm, h[kept]).to(h.dtype)
        return normed

    def set_temperature(self, temperature: float) -> None:
        """Change T in place, for example from a schedule."""
        T = usable(temperature)
        self.temperature.fill_(T)
        self._given = T, self._given[1] if self._given else None

    def train(self, mode: bool = True) -> TemperedHead:
        """As ``nn.Module``'s; leaving the training mode, say so if the norm has learned nothing in it."""
        if self.training and not mode and self.stepped:
            seen = getattr(self.norm, "num_batches_tracked", None)
            if isinstance(seen, Tensor) and not seen.is_meta and int(seen) == 0:
                self.stepped = False  # once
                warnings.warn(
                    "The head was trained, but the norm before it has seen no batch: batches of one sample, a helper that "
                    "freezes BatchNorm, or vmap. Use larger batches, keep the norm out of the helper, or temper "
                    "with norm='layer' or norm=None.",
                    TstarWarning,
                    stacklevel=2,
                )
        return super().train(mode)

    def fuse(self, allow_bias: bool = False, *, path: str = "") -> nn.Module:
        """The plain output layer with the same eval-mode logits; timm's ``reparameterize_model`` calls this.

        A LayerNorm depends on the sample and cannot fold: it stays, without its affine part, in an
        ``nn.Sequential`` before the layer, and a warning says so.
        """
        norm = self.norm
        if self.training or (norm is not None and norm.training):
            raise TstarError(
                "Folding needs eval mode, in which the norm's statistics are fixed; got a head in training "
                "mode. Call model.eval() first."
            )
        if hasattr(self.layer, "base_layer"):  # PEFT: what is added to W·h would be left as it is
            raise TstarError(
                "An output layer with an adapter cannot be folded; call merge_and_unload() first."
            )
        check_layer(self.layer)
        check_numbers(path, self)
        layer = copy.deepcopy(self.layer)
        weight, bias = weight_of(layer), getattr(layer, "bias", None)
        scale, shift = affine_of_norm(norm, weight)
        new_weight, new_bias = fold_affine(weight, bias, scale, shift, self.temperature)
        if bias is None and shift is not None and not allow_bias:
            raise TstarError(
                "The output layer has no bias to absorb the norm's shift; pass allow_bias=True to add one (one new "
                "key in the state dict)."
            )
        for name, tensor in (("weight", new_weight), ("bias", new_bias)):
            if not tensor.is_meta and not bool(tensor.isfinite().all()):
                raise TstarError(
                    f"The head cannot be folded: the {name} of {path or 'the layer'} would not fit into {tensor.dtype} at "
                    f"T = {float(self.temperature):.3g}; convert the model with .float() first."
                )
        with torch.no_grad():
            weight.copy_(new_weight)
            if bias is not None:
                bias.copy_(new_bias)
            elif shift is not None:
                layer.bias = nn.Parameter(new_bias.to(weight), requires_grad=weight.requires_grad)
        if not isinstance(norm, nn.LayerNorm):
            return layer
        warnings.warn(
            "A LayerNorm cannot fold into the output layer: it stays before it, so that the state dict has "
            "other keys than the original architecture's.",
            TstarWarning,
            stacklevel=2,
        )
        kept = ChannelNorm if not isinstance(layer, nn.Linear) else nn.LayerNorm
        plain = kept(weight.shape[1], eps=norm.eps, elementwise_affine=False)
        return nn.Sequential(OrderedDict(norm=plain, layer=layer)).eval()

    def _apply(self, fn: Any, recurse: bool = True) -> TemperedHead:
        """As ``nn.Module``'s. Off the meta device (``to_empty``) T and c get their numbers, which nothing else would give."""
        was_meta = self.temperature.is_meta
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if was_meta and not self.temperature.is_meta and self._given:
            for buffer, number in zip((self.temperature, self.backbone), self._given, strict=True):
                if buffer is not None and number is not None:
                    buffer.fill_(number)
        return self

    # What other code asks of an output layer is answered by the output layer.
    @property
    def weight(self) -> Tensor:
        return weight_of(self.layer)

    @property
    def bias(self) -> Tensor | None:
        return getattr(self.layer, "bias", None)

    @property
    def in_features(self) -> int:
        return weight_of(self.layer).shape[1]

    @property
    def out_features(self) -> int:
        return weight_of(self.layer).shape[0]

    def extra_repr(self) -> str:
        if self.temperature.is_meta:
            return ""
        T = self.temperature.item()
        if self.backbone is None:
            return f"temperature={T:.4g}"
        c = self.backbone.item()
        return f"temperature={T:.4g}, backbone={c:.4g} (gradient into the backbone × {c * T:.4g})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A head that was pickled before ``backbone`` existed has none."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._buffers.setdefault("backbone", None)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
        """``backbone`` came later and is optional: a checkpoint without one leaves it, one with it brings it."""
        key = f"{prefix}backbone"
        if key in state and self.backbone is None:
            self.backbone = torch.empty_like(self.temperature)
        elif key not in state and self.backbone is not None:
            state[key] = self.backbone
        if not self.scheduled:
            _warn_of_other(self.temperature, state.get(f"{prefix}temperature"), prefix)
        super()._load_from_state_dict(state, prefix, *args)


def _warn_of_other(own: Tensor, loaded: Any, prefix: str) -> None:
    """Say that a checkpoint brings another T than the head was given."""
    known = isinstance(loaded, Tensor) and not (loaded.is_meta or own.is_meta)
    if known and loaded.numel() == 1 and float(loaded) != float(own):
        warnings.warn(
            f"The checkpoint's T = {float(loaded):.4g} takes the place of T = {float(own):.4g}"
            f"{f' at {prefix[:-1]!r}' if prefix else ''}; call set_temperature to train at another one.",
            TstarWarning,
            stacklevel=2,
        )


def scale_gradient(features: Tensor, factor: Tensor) -> Tensor:
    """``features`` to the last bit, whose gradient is multiplied by ``factor`` on its way back."""
    return _ScaledGradient.apply(features, factor)  # type: ignore[no-any-return]


class _ScaledGradient(torch.autograd.Function):
    """A function of its own, since h.detach() + c·(h − h.detach()) turns inf into NaN and −0 into 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(features: Tensor, factor: Tensor) -> Tensor:
        return features.view_as(features)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        return gradient * factor, None


def batch_norm(norm: Any, rows: Tensor) -> Tensor:
    """``norm`` on (N, M, …); a single value for each feature is normalized with the running statistics."""
    alone = rows.numel() <= rows.shape[1] and not isinstance(norm, nn.SyncBatchNorm)
    if not (is_frozen_norm(norm) or (norm.training and alone)):
        return norm(rows)  # type: ignore[no-any-return]
    return F.batch_norm(
        rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
    )
