"""How fast a model learns: three speeds, which the norm before the head and T change beside the logits.

"BN before the head, logits ÷ T" changes how far a step moves the logits, how large they are at the start, and the gradient
that reaches the backbone: BN multiplies it by about 1/σ, with σ the features' standard deviation, and ÷T divides it by T. A
head with ``backbone=c`` multiplies it by c·T again, so that c = σ gives back the gradient of the plain model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.numbers import positive
from tstar.surgery.finding import Head, resolve_head, unwrap, working_heads
from tstar.surgery.head import Norm, TemperedHead
from tstar.surgery.layers import check_layer, class_dim
from tstar.surgery.probing import call, inputs_of, runs_on, tensors_in, undisturbed

_FEWEST = 8  # samples: with fewer, batch statistics say little of σ (with two, BN passes no gradient at all)
FAR = 2.0  # a speed changed by more than this is worth a caution


@dataclass(frozen=True)
class Speeds:
    """Three speeds of a model, and of its plain twin: the same weights without norm and T.

    Attributes:
        head: how far one step moves a sample's own logit for a gradient of one there: lr·‖h‖²/(B·(1−μ)·T²) with SGD,
            lr·‖h‖₁/T with Adam; h the layer's input (a bias counts as one more feature that is 1), the mean over
            the batch.
        logits: the logits' standard deviation over the classes, at these weights.
        gradient: the norm of the gradient that reaches the backbone's parameters, over the plain twin's; ``None``
            where the backbone has no trainable parameters or the head's weight is zero.
        optimizer: its name, such as ``"sgd"``; ``lr`` the head's learning rate (1 where none was given).
    """

    head: float
    plain_head: float
    logits: float
    plain_logits: float
    gradient: float | None
    optimizer: str
    lr: float
    temperature: float

    @property
    def backbone(self) -> float | None:
        """How fast the backbone learns, over the plain twin. Adam's steps do not see the gradient's size."""
        return 1.0 if self.gradient is not None and self.optimizer != "sgd" else self.gradient

    @property
    def cautions(self) -> tuple[str, ...]:
        """A sentence for each speed that differs from the plain model's by more than a factor of two."""
        return tuple(
            sentence
            for ratio, sentence in self._sentences()
            if ratio is not None and not 1 / FAR <= ratio <= FAR
        )

    def _sentences(self) -> list[tuple[float | None, str]]:
        head, logits = _over(self.head, self.plain_head), _over(self.logits, self.plain_logits)
        backbone = self.backbone
        if backbone is None:
            said = "The backbone receives no gradient that could be compared."
        elif self.optimizer != "sgd":
            said = f"The backbone learns as fast as in your plain model: {self.optimizer} does not see a gradient's size."
        else:
            said = f"The backbone learns {_times(backbone)}as fast as in your plain model."
        return [
            (head, f"The head learns {_times(head)}as fast as in your plain model."),
            (backbone, said),
            (logits, f"The logits are {_times(logits)}as large as in your plain model."),
        ]

    def __str__(self) -> str:
        gradient = "–" if self.gradient is None else f"{self.gradient:.3g}"
        rows = [
            ("", "plain", f"T = {self.temperature:.4g}"),
            ("head: Δlogit per step", f"{self.plain_head:.3g}", f"{self.head:.3g}"),
            ("gradient into the backbone", "1", gradient),
            ("size of the logits", f"{self.plain_logits:.3g}", f"{self.logits:.3g}"),
        ]
        lines = [f"{name:<28}{plain:>9}{own:>12}" for name, plain, own in rows]
        lines += [sentence for _, sentence in self._sentences()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        return {**asdict(self), "backbone": self.backbone, "cautions": list(self.cautions)}


def speeds(
    model: nn.Module, batch: Any, optimizer: Any, *, head: str | Head | None = None
) -> Speeds:
    """The three speeds of a model, plain or tempered, next to those of its plain twin.

    Measured in training mode on one batch; no labels are needed, and nothing about the model changes. For the
    backbone both heads get the same random gradient at their logits, so that only the way back is compared.

    Args:
        model: a classifier; ``tstar.speeds(tstar.temper(model, T), …)`` shows what the recipe changes.
        batch: a batch as you train with: a tensor, a tuple of arguments, a mapping of keywords, or the list
            [inputs, labels] that a DataLoader gives. A head that classifies every position counts each as a sample.
        optimizer: a torch optimizer, a name, or a pair such as ``("sgd", 0.1)``.
        head: the output layer's path, where the model has several.
    """
    from tstar.formula.training import Training

    model, batch = unwrap(model), inputs_of(batch)
    at, layer = _head_module(model, head, batch)
    training = Training.of(optimizer, layer=layer)
    name, lr = training.optimizer, training.lr
    if name is None:
        raise TstarError(
            "speeds needs the optimizer: a torch optimizer, or a pair such as ('sgd', 0.1)."
        )
    T = float(at.temperature) if isinstance(at, TemperedHead) else 1.0
    kind = "sgd" if training.family == "sgd" else name
    check_layer(layer)
    axis, rate = class_dim(layer), 1.0 if lr is None else lr
    bias = float(getattr(layer, "bias", None) is not None)
    with _run(model, at, batch) as (features, backbone):
        plain_logits, logits = layer(features), at(features)
        _check_finite("logits", logits, batch)
        normed = at.normalize(features) if isinstance(at, TemperedHead) else features
        gradient = None
        if backbone:
            plain, own = _received(backbone, layer, plain_logits, logits)
            _check_finite("gradients", torch.tensor([plain, own]), batch)
            gradient = own / plain if plain > 0 and own > 0 else None
    step, plain_step = (
        _step(_rows(h, axis), kind, rate, training.rest, t, bias)
        for h, t in ((normed, T), (features, 1.0))
    )
    return Speeds(
        head=step,
        plain_head=plain_step,
        logits=_spread(_rows(logits, axis)),
        plain_logits=_spread(_rows(plain_logits, axis)),
        gradient=gradient,
        optimizer=kind,
        lr=rate,
        temperature=T,
    )


def known_backbone(backbone: object) -> float | Literal["matched"] | None:
    """A scale of the backbone's gradient as a user gives it: a number, ``"matched"``, or none."""
    if backbone is None or not isinstance(backbone, str):
        return None if backbone is None else positive("backbone", backbone)
    if backbone != "matched":
        raise TstarError(f"backbone is a number, 'matched' or None, got {backbone!r}.")
    return "matched"


def backbone_scale(
    backbone: object, model: nn.Module, head: Head, batch: Any, norm: object
) -> float | None:
    """c of a head with this norm: the number that the user gives, measured for ``"matched"``, or none."""
    known = known_backbone(backbone)
    if known != "matched":
        return known
    if norm is None:
        return 1.0
    if batch is None:
        raise TstarError(
            "backbone='matched' is measured on a batch of your training data: pass example_input=batch."
        )
    return matched_backbone(model, head, batch, "layer" if norm == "layer" else "batch")


def matched_backbone(
    model: nn.Module, head: Head, batch: Any, norm: Norm | None = "batch"
) -> float:
    """c at which a tempered head sends the backbone a gradient as large as the plain head does.

    Both heads get the same random gradient at their logits, in training mode, on one batch; c is the ratio of the norms
    of what the backbone's parameters receive, at T = 1. No labels are needed. Nothing about the model changes. In a
    model that is tempered already (with T = 1, say), its own norm counts.
    """
    layer = model.get_submodule(head.path)
    parent = model.get_submodule(head.path.rpartition(".")[0]) if head.path else model
    present = parent if isinstance(parent, TemperedHead) else None
    if (norm if present is None else present.norm) is None:
        return 1.0
    with _run(model, present or layer, inputs_of(batch)) as (features, backbone):
        if not backbone:
            return 1.0
        if present is None:
            logits = TemperedHead(layer, 1.0, norm).train()(features)
        else:
            logits = layer(present.normalize(features))
        plain, changed = _received(backbone, layer, layer(features), logits)
        _check_finite("gradients", torch.tensor([plain, changed]), inputs_of(batch))
    if not (plain > 0 and changed > 0):
        raise TstarError(
            "No gradient reaches the backbone, so its speed cannot be matched (is the head's weight zero?); leave "
            "backbone out."
        )
    return plain / changed


@contextmanager
def _run(model: nn.Module, at: nn.Module, batch: Any) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """One run in training mode: the features that reach ``at``, with their graph, and the backbone's parameters."""
    own = {id(p) for p in at.parameters()}
    seen: list[Tensor] = []
    hook = at.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    with undisturbed(model, training=True), torch.enable_grad():
        try:
            with runs_on("the batch"):
                call(model, batch)
        finally:
            hook.remove()
        if not seen:
            raise TstarError("The model did not call its output layer on this batch.")
        rows = seen[0].numel() // at.weight.shape[1]  # type: ignore[index]
        if rows < _FEWEST:
            raise TstarError(
                f"A speed is measured on a batch of at least {_FEWEST} samples, got {rows}; pass a batch as you train with."
            )
        _check_finite("features", seen[0], batch)
        yield seen[0], [p for p in model.parameters() if p.requires_grad and id(p) not in own]


def _check_finite(what: str, values: Tensor, batch: Any) -> None:
    """Refuse a run of which no speed can be told, and say whether the batch or the model is to blame."""
    if values.isfinite().all():
        return
    inputs = tensors_in([batch])
    if not all(tensor.isfinite().all() for tensor in inputs):
        raise TstarError("The batch must be finite, got NaN or infinity in it; check your data.")
    raise TstarError(
        f"The model's {what} must be finite, got NaN or infinity on a finite batch; check its weights."
    )


def _received(
    backbone: list[Tensor], layer: nn.Module, plain: Tensor, own: Tensor
) -> tuple[float, float]:
    """The norms of the gradients at the backbone's parameters, from the plain logits and from its own."""
    signal = torch.randn(own.shape, generator=torch.Generator().manual_seed(0)).to(own)
    # A softmax's gradient sums to zero.
    signal = signal - signal.mean(class_dim(layer), keepdim=True)
    norms = []
    for logits in (plain, own):
        gradients = torch.autograd.grad(
            logits, backbone, signal, retain_graph=True, allow_unused=True
        )
        squares = (float(g.double().square().sum()) for g in gradients if g is not None)
        norms.append(math.sqrt(sum(squares)))
    return norms[0], norms[1]


def _head_module(
    model: nn.Module, head: str | Head | None, batch: Any
) -> tuple[nn.Module, nn.Module]:
    """The module whose input is the features, and the output layer: one and the same in a plain model."""
    path = head.path if isinstance(head, Head) else head
    tempered = {p: h for p, h in working_heads(model).items() if path in (None, p, f"{p}.layer")}
    if len(tempered) > 1:
        raise TstarError(
            f"Found {len(tempered)} tempered heads ({', '.join(map(repr, tempered))}); pass head= to choose one."
        )
    for present in tempered.values():
        return present, present.layer
    layer = resolve_head(model, head, batch).layer
    return layer, layer


def _step(
    h: Tensor, optimizer: str, lr: float, rest: float, temperature: float, bias: float
) -> float:
    """How far a step moves a sample's own logit for a gradient of one: see :class:`Speeds`."""
    if optimizer == "sgd":
        size = float(h.square().sum(1).mean()) + bias
        return lr * size / (len(h) * rest * temperature**2)
    return lr * (float(h.abs().sum(1).mean()) + bias) / temperature


def _rows(values: Tensor, axis: int) -> Tensor:
    """(N, M), one row per sample and position, in float64; ``axis`` is that of the features."""
    last = values.movedim(axis, -1)
    return last.detach().reshape(-1, last.shape[-1]).double()


def _spread(logits: Tensor) -> float:
    return float((logits - logits.mean(1, keepdim=True)).square().mean().sqrt())


def _times(ratio: float) -> str:
    """``"2.1 times "``, or nothing where it rounds to one."""
    text = f"{ratio:.2g}"
    return "" if text == "1" else f"{text} times "


def _over(own: float, plain: float) -> float:
    return own / plain if plain > 0 else math.inf if own > 0 else 1.0
