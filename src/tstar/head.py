"""The tempered head, norm → output layer → ÷T, and the algebra that folds it away.

Belongs here: what an output layer is, the module that takes its place, and the one function with
the equation of folding. Finding a model's output layer (``output_layer.py``) and changing a model
(``surgery.py``) do not.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tstar.errors import TstarError, positive, unknown, warn

Norm = Literal["batch"]
_BATCH_NORM: dict[type[nn.Module], type[_BatchNorm]] = {
    nn.Linear: nn.BatchNorm1d,
    nn.Conv1d: nn.BatchNorm1d,
    nn.Conv2d: nn.BatchNorm2d,
    nn.Conv3d: nn.BatchNorm3d,
}
# Differences between tempered and folded logits, relative to the largest logit.
_REFUSED, _MENTIONED = 0.02, 1e-3


# --- output layers ---
def is_output_layer(module: nn.Module) -> bool:
    """Whether a module is linear, or a convolution of kernel size 1."""
    if isinstance(module, nn.Linear):
        return True
    return isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and (
        set(module.kernel_size) == {1}
        and set(module.stride) == {1}
        and module.groups == 1
        and (isinstance(module.padding, str) or not any(module.padding))
    )


def weight_of(layer: nn.Module) -> Tensor:
    weight = layer.weight
    assert isinstance(weight, Tensor)
    return weight


def class_dim(layer: nn.Module) -> int:
    """The axis of classes and features: last for a linear layer, 1 for a convolution."""
    return 1 if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d) else -1


def owns_numbers(tensor: Tensor) -> bool:
    """Whether each entry has its own memory; an expanded tensor repeats a few of them."""
    return tensor.is_meta or (
        tensor.layout == torch.strided
        and tensor.untyped_storage().nbytes() >= tensor.numel() * tensor.element_size()
    )


def check_layer(layer: nn.Module) -> None:
    """Refuse, with the reason, what cannot be normalized before, divided after and folded."""
    kind, weight = type(layer).__name__, getattr(layer, "weight", torch.empty(0))
    computed = nn.utils.parametrize.is_parametrized(layer)
    if "quantized" in type(layer).__module__:
        got = f"a quantized {kind}. Quantize the folded model, not the one that trains."
    elif not is_output_layer(layer):
        got = f"{kind}. Pass head='path.of.the.layer' to name another one."
    elif computed or hasattr(layer, "weight_g") or hasattr(layer, "weight_orig"):
        got = f"a {kind} whose weight is computed from others (weight norm, pruning, …)."
        got += " Remove the parametrization first (remove_parametrizations)."
    elif not weight.is_floating_point():
        got = f"{weight.dtype} weights. Quantize the folded model, not the one that trains."
    elif weight.shape[0] < 2:
        got = "one output (a regression, or a sigmoid's logit), which has no softmax temperature."
    elif weight.shape[1] < 1 or not owns_numbers(weight):
        got = f"a weight of shape {tuple(weight.shape)} and stride {weight.stride()}."
    else:
        return
    raise TstarError(
        "The output layer must be an nn.Linear or a convolution of kernel size 1, its weight a "
        "plain floating-point parameter in memory of its own, for at least one feature and two "
        f"classes; got {got}"
    )


def check_affine(layer: nn.Module, path: str = "") -> None:
    """Refuse a layer whose own ``forward`` is not W·h + b, as seen on random features."""
    weight = weight_of(layer)
    stock = next(kind for kind in _BATCH_NORM if isinstance(layer, kind))
    if type(layer).forward is stock.forward or weight.is_meta:
        return
    features = random_features(layer)
    bias = getattr(layer, "bias", None)
    plain = F.linear(features.movedim(class_dim(layer), -1), weight.flatten(1), bias)
    gap = _difference(plain.movedim(-1, class_dim(layer)), layer.forward(features))
    if not gap <= max(_REFUSED, 8 * torch.finfo(weight.dtype).eps):
        raise TstarError(
            f"The output layer must compute W·h + b, but {path or type(layer).__name__!r} "
            "computes something else (a cosine head, perhaps), into which a norm cannot fold."
        )


def replaced(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """``model`` with ``new`` in every place of ``old``; ``new`` itself if ``old`` is the model."""
    if old is model:
        return new
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):  # named_children() skips aliases
            if child is old and parent is not new:
                setattr(parent, name, new)
    return model


# --- the tempered head ---
class TemperedHead(nn.Module):
    r"""z = (W·norm(h) + b) / T, the logits of a classifier that trains at temperature T.

    ``norm`` is a real ``nn.BatchNorm1d`` (2d or 3d for a 1×1-convolution head), so that
    SyncBatchNorm conversion, weight-decay filters and freezing find it. ``temperature`` is a
    buffer: saved in the state dict, moved by ``.to()``, and changeable in place by a schedule.

    Shapes: h is (B, M), (M,), (B, L, M) or (B, H, W, M) for a linear layer, normalized over all but
    the last axis; (B, M, H, W) for a convolution. A training batch with a single value for each
    feature has no variance: it is normalized with the running statistics and leaves them. With
    ``mask``, a (B, L) tensor, positions that are zero in it count in no statistic
    (:func:`tstar.monitor.mask_padding`).

    Args:
        layer: the output layer, an ``nn.Linear`` or a convolution of kernel size 1.
        temperature: T > 0.
        norm: ``"batch"``, as in the paper, or ``None``.
    """

    temperature: Tensor
    mask: Tensor | None
    guard: Any = None  # watches the training: tstar.monitor.Guard

    def __init__(self, layer: nn.Module, temperature: float, norm: Norm | None = "batch") -> None:
        super().__init__()
        check_layer(layer)
        weight = weight_of(layer)
        placement: dict[str, Any] = {"device": weight.device, "dtype": weight.dtype}
        if norm not in (None, "batch"):
            raise unknown("norm", norm, ("batch", "None"))
        self.norm: nn.Module | None = None
        if norm == "batch":
            kind = next(kind for kind in _BATCH_NORM if isinstance(layer, kind))
            self.norm = _BATCH_NORM[kind](weight.shape[1], **placement)
        self.layer = layer
        self.axis = class_dim(layer)  # once: quantization may replace the layer
        self.mask = None
        # A buffer on the meta device cannot hold it.
        self._given = positive("temperature", temperature)
        exact = torch.promote_types(weight.dtype, torch.float32)
        value = torch.tensor(self._given, dtype=exact, device=weight.device)
        self.register_buffer("temperature", value)
        self.train(layer.training)

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layer(self.normalize(features)) / self.temperature
        traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        if self.guard is not None and not (traced or torch.compiler.is_compiling()):
            self.guard.look(self, features, logits)
        return logits

    def normalize(self, h: Tensor) -> Tensor:
        """The features as the norm gives them to the layer."""
        norm = self.norm
        if norm is None:
            return h
        linear = self.axis == -1
        if self.mask is None or not norm.training:
            rows = h.reshape(-1, h.shape[-1]) if linear else h
            return batch_norm(norm, rows).reshape(h.shape)
        if not linear or self.mask.shape != h.shape[:-1]:
            raise TstarError(
                "A mask must have the shape of the features without their last axis, got "
                f"{tuple(self.mask.shape)} for {tuple(h.shape)}."
            )
        kept = self.mask.bool()
        normed = torch.zeros_like(h)  # a masked position's logits are the bias over T
        normed[kept] = batch_norm(norm, h[kept]).to(h.dtype)
        return normed

    def set_temperature(self, temperature: float) -> None:
        """Change T in place, for example from a schedule."""
        self._given = positive("temperature", temperature)
        self.temperature.fill_(self._given)

    def train(self, mode: bool = True) -> TemperedHead:
        """As ``nn.Module``'s; at the switch to eval mode the guard looks at what was trained."""
        if self.training and not mode and self.guard is not None:
            self.guard.leave_training(self)
        return super().train(mode)

    def fuse(self, allow_bias: bool = False, *, path: str = "") -> nn.Module:
        """The plain output layer with the same eval-mode logits, compared on random features.

        timm's ``reparameterize_model`` calls this.
        """
        norm = self.norm
        if self.training or (norm is not None and norm.training):
            raise TstarError(
                "Folding needs eval mode, in which the norm's statistics are fixed; got a head in "
                "training mode. Call model.eval() first."
            )
        if hasattr(self.layer, "base_layer"):  # PEFT: what is added to W·h would be left as it is
            raise TstarError(
                "An output layer with an adapter cannot be folded; call merge_and_unload() first."
            )
        check_layer(self.layer)
        layer = copy.deepcopy(self.layer)
        weight, bias = weight_of(layer), getattr(layer, "bias", None)
        scale, shift = affine_of_norm(norm, weight)
        new_weight, new_bias = fold_affine(weight, bias, scale, shift, self.temperature)
        if bias is None and shift is not None and not allow_bias:
            raise TstarError(
                "The output layer has no bias to absorb the norm's shift; pass allow_bias=True to "
                "add one (one new key in the state dict)."
            )
        with torch.no_grad():
            weight.copy_(new_weight)
            if bias is not None:
                bias.copy_(new_bias)
            elif shift is not None:
                layer.bias = nn.Parameter(new_bias.to(weight), requires_grad=weight.requires_grad)
        check_agreement(self, layer, path)
        return layer

    def _apply(self, fn: Any, recurse: bool = True) -> TemperedHead:
        """As ``nn.Module``'s; off the meta device (``to_empty``) T gets its number."""
        was_meta = self.temperature.is_meta
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if was_meta and not self.temperature.is_meta:
            self.temperature.fill_(self._given)
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

    @property
    def batches_seen(self) -> int | None:
        """Training batches in the norm's statistics; ``None`` if nothing counts them."""
        seen = getattr(self.norm, "num_batches_tracked", None)
        return int(seen) if isinstance(seen, Tensor) and not seen.is_meta else None

    def __prepare_scriptable__(self) -> TemperedHead:
        raise TstarError("A tempered head cannot be scripted; script the folded model.")

    def extra_repr(self) -> str:
        return "" if self.temperature.is_meta else f"temperature={self.temperature.item():.4g}"


def check_norm(norm: nn.Module) -> None:
    if not isinstance(norm, _BatchNorm):
        raise TstarError(
            f"The norm before the output layer must be a batch norm, got {type(norm).__name__}, "
            "which something put there after tempering. Replace norms before you temper."
        )


def batch_norm(norm: Any, rows: Tensor) -> Tensor:
    """``norm`` on (N, M, …); a single value per feature takes the running statistics."""
    check_norm(norm)
    here = norm.training and not isinstance(norm, nn.SyncBatchNorm)
    if not here or rows.numel() > rows.shape[1]:
        return norm(rows)  # type: ignore[no-any-return]
    return F.batch_norm(
        rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
    )


# --- folding ---
def fold_affine(
    weight: Tensor, bias: Tensor | None, scale: Tensor, shift: Tensor | None, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """(W·(s⊙h + t) + b)/T as one affine map of h: W′ = W·diag(s)/T, b′ = (W·t + b)/T.

    Symbols: W is (K, M) or (K, M, 1, …), b (K,), s and t (M,). Computed in float64, given in W's
    dtype.
    """
    T = _exact(temperature)
    W = _exact(weight).reshape(weight.shape[0], weight.shape[1])
    b = torch.zeros_like(W[:, 0]) if bias is None else _exact(bias)
    moved = b if shift is None else W @ shift + b
    return (W * scale / T).reshape(weight.shape).to(weight), (moved / T).to(weight)


def affine_of_norm(norm: Any, like: Tensor) -> tuple[Tensor, Tensor | None]:
    """The (scale, shift) that a norm in eval mode applies to each feature, in float64.

    s = γ/sqrt(σ² + ε), t = β − s⊙μ. A norm that is absent scales by one and shifts by nothing.
    """
    one = torch.ones(like.shape[1], dtype=torch.float64, device=_exact(like).device)
    if norm is None:
        return one, None
    check_norm(norm)
    gamma = _exact(norm.weight) if norm.weight is not None else one
    beta = _exact(norm.bias) if norm.bias is not None else torch.zeros_like(one)
    scale = gamma / torch.sqrt(_exact(norm.running_var) + norm.eps)
    return scale, beta - scale * _exact(norm.running_mean)


def _exact(tensor: Tensor) -> Tensor:
    """In float64 on the CPU, which holds every device's numbers exactly; meta stays meta."""
    return tensor.detach().to("meta" if tensor.is_meta else "cpu").to(torch.float64)


def random_features(layer: nn.Module, norm: Any = None) -> Tensor:
    """A batch that the layer takes: normal, with the mean and deviation that the norm has seen."""
    weight = weight_of(layer)
    shape = (32, weight.shape[1], *(2 for _ in weight.shape[2:]))
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    mean, var = getattr(norm, "running_mean", None), getattr(norm, "running_var", None)
    if isinstance(mean, Tensor) and isinstance(var, Tensor):
        per_feature = (-1, *(1 for _ in weight.shape[2:]))
        mean, var = (_exact(t).float().reshape(per_feature) for t in (mean, var))
        values = mean + var.sqrt() * values
    return values.to(weight)


def check_agreement(head: TemperedHead, other: Callable[[Tensor], Any], path: str = "") -> None:
    """Refuse what would take a tempered head's place if it gives other logits, hooks and all."""
    if head.weight.is_meta:
        return
    features = random_features(head.layer, head.norm)
    with torch.no_grad():
        gap = _difference(head(features), other(features))
    eps, where = torch.finfo(head.weight.dtype).eps, path or "the output layer"
    both = (head, head.layer)
    if any(module._forward_hooks or module._forward_pre_hooks for module in both):
        cause = "A forward hook on it changes them: take the hook off (handle.remove()), then fold."
    elif math.isnan(gap):
        cause = "Its weights, T or the norm's statistics give no finite logits."
    elif eps > 1e-4:
        T = float(head.temperature)
        cause = f"{head.weight.dtype} is too coarse at T = {T:.3g}: call model.float() first."
    else:
        cause = "Its forward does more than W·h + b, or a norm in it changes with the input."
    if not gap <= max(_REFUSED, 8 * eps):
        raise TstarError(
            f"The head cannot be folded: {where} must give the tempered logits, but on random "
            f"features they differ by {gap:.1%} of the largest. {cause}"
        )
    if gap > max(_MENTIONED, 2 * eps):
        warn(f"The logits of {where} differ by {gap:.2%} of the largest after folding. {cause}")


@torch.no_grad()
def _difference(wanted: Tensor, other: Any) -> float:
    """The largest difference relative to the largest value; NaN if they cannot be compared."""
    if not isinstance(other, Tensor) or other.shape != wanted.shape:
        return math.nan
    wanted, other = wanted.double(), other.double()
    return float((wanted - other).abs().max() / wanted.abs().max().clamp(min=1e-300))
