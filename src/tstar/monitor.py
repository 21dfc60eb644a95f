"""How a tempered training goes: the guard of a head, recalibrate, masks of padding.

Belongs here: whatever looks at a training without changing its gradients. What the guard finds is a
warning, once, with the way out; a guard that fails goes silent.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tstar import output_layer as layers
from tstar.errors import TstarError, TstarWarning, guarded, warn, whole
from tstar.head import TemperedHead, weight_of

_MEMORY = 10  # batches after which the running statistics should have forgotten most
_FIRST, _EVERY = 20, 64  # batches that are looked at: the first ones, and then one of so many
_LONG = 512  # batches after which an optimizer that accumulates has taken a step
_SETTLED = 50  # batches after which the initial statistics hardly count: 0.9⁵⁰ = 0.5 %


class Guard:
    """Watches one head: is it called, does an optimizer train it, do the batches suit its norm?

    It looks at the head's own calls and weights, and keeps no hook on anything else.
    """

    def __init__(self) -> None:
        self.calls = 0  # training batches that reached the head
        self.evaluated = 0  # batches with gradients in eval mode
        self._weights: tuple[Tensor, ...] = ()  # some of them, at the first call
        self._gap: Tensor | None = None  # of the last batch: to the running mean, in deviations²
        self._given: set[str] = set()

    def look(self, head: TemperedHead, features: Tensor, logits: Tensor) -> None:
        """Called with each batch."""
        if not logits.requires_grad or logits.is_meta:
            return
        try:
            if head.training:
                self.calls += 1
                self._look(head, features, logits)
            elif not self.calls and head.norm is not None:
                self.evaluated += 1
                if self.evaluated == 1:
                    self._weights = _some_weights(head)
                if self.evaluated == _FIRST and self._changed(head)[0]:  # no saliency, no attack
                    self._warn("eval")
        except TstarWarning:  # the user has made warnings errors
            raise
        except Exception:  # functorch, a tensor on another device: never an error of the training
            head.guard = None

    def _look(self, head: TemperedHead, features: Tensor, logits: Tensor) -> None:
        if self.calls == 1:
            self._weights = _some_weights(head)
        if self.calls == _LONG:  # for a loop without eval mode
            self._check_trained(head)
        if not isinstance(head.norm, _BatchNorm) or (self.calls > _FIRST and self.calls % _EVERY):
            return
        if head.mask is None:
            self._gap = _gap(head.norm, _some_rows(features.detach(), head.axis))
            if features.ndim == 3 and head.axis == -1 and self.calls <= _FIRST:
                logits.register_hook(self._look_at_padding)  # type: ignore[no-untyped-call]

    def _look_at_padding(self, gradient: Tensor) -> None:
        """Positions without a label have no gradient."""
        if gradient.ndim == 3 and bool((gradient[:, -1] == 0).all(-1).any()):
            self._warn("padding")

    def leave_training(self, head: TemperedHead) -> None:
        """At the switch to eval mode: were head and norm trained, and what were the batches like?"""
        if weight_of(head.layer).is_meta:
            return
        try:
            if head.batches_seen == 0:  # which a compiled head counts as well
                if self.calls:
                    self._warn("unseen")
                elif weight_of(head.layer).grad is not None and not self.evaluated:
                    self._warn("unused")
            if self.calls >= _FIRST:
                self._check_trained(head)
            self.check_statistics(head, _SETTLED)
        except TstarWarning:
            raise
        except Exception:
            head.guard = None

    def _check_trained(self, head: TemperedHead) -> None:
        """Whether head and norm have changed since the first call."""
        changed = self._changed(head)
        shift: Any = getattr(head.norm, "bias", None)
        if not any(changed) and head.weight.requires_grad:
            self._warn("missed", missed="tempered head")
        elif changed[0] and not all(changed) and shift.requires_grad:
            self._warn("missed", missed="norm before the output layer")

    def _changed(self, head: TemperedHead) -> list[bool]:
        pairs = zip(self._weights, _some_weights(head), strict=True)
        return [not torch.equal(before, after) for before, after in pairs]

    def check_statistics(self, head: TemperedHead, least: int = 10) -> None:
        """After so many batches: warn if the last one is far from the norm's statistics."""
        if self._gap is None or (head.batches_seen or 0) < least:
            return
        distance, ratio, samples = self._gap.tolist()
        if distance > 0.5 + 4 / samples or not 0.1 <= ratio <= 10:  # there accuracy fell by 5
            self._warn("gap", mean=f"{math.sqrt(distance):.2g}", ratio=f"{ratio:.2g}")

    def _warn(self, what: str, **numbers: str) -> None:
        if what not in self._given:
            self._given.add(what)
            warn(_WARNINGS[what].format(**numbers))


_WARNINGS = {
    "eval": (
        "The model trains in eval mode, in which the norm before the output layer learns nothing: "
        "call model.train() before the training, or temper with norm=None."
    ),
    "unused": (
        "The output layer has gradients, but the tempered head is never called: the model uses the "
        "layer's weight by itself, as in F.linear(h, self.fc.weight), or holds the layer "
        "elsewhere. Norm and T have no effect: call the layer, or undo it with tstar.untemper."
    ),
    "unseen": (
        "The head was trained, but the norm before it has seen no batch. Likely causes are batches "
        "of one sample, a helper that freezes BatchNorm, and vmap: use larger batches, keep the "
        "norm out of the helper, or temper with norm=None."
    ),
    "missed": (
        "The optimizer does not train the {missed}; was it built before tempering? Build it after "
        "tstar.temper, or pass it: tstar.temper(model, optimizer=optimizer)."
    ),
    "padding": (
        "The norm before the output layer sees positions without a label at the end of sequences, "
        "and such padding counts in its statistics: call tstar.monitor.mask_padding(model), or set "
        "the head's mask before each call."
    ),
    "gap": (
        "The statistics of the norm before the output layer are far from those of the last batch "
        "(the mean by {mean} deviations, the variance {ratio} times as large), so that eval mode "
        "gives other logits: shuffle the training data (each batch needs several classes), lower "
        "the learning rate, or call tstar.monitor.recalibrate(model, loader)."
    ),
}


def _some_weights(head: TemperedHead) -> tuple[Tensor, ...]:
    """Copies of some rows of the output layer's weight, and of some of the norm's shift.

    A shift starts at 0, where no step is lost to rounding, however coarse the numbers are.
    """
    watched = (head.weight, getattr(head.norm, "bias", None))
    return tuple(tensor.detach()[:64].clone() for tensor in watched if tensor is not None)


def _some_rows(values: Tensor, axis: int) -> Tensor:
    """At most 512 rows of (N, M), one per sample and position; ``axis`` is that of the features."""
    rows = values.movedim(axis, -1).reshape(-1, values.shape[axis])
    return rows[:: max(1, len(rows) // 512)]


def _gap(norm: _BatchNorm, rows: Tensor) -> Tensor | None:
    """The running mean's distance from the batch's, in deviations²; variances' ratio; rows."""
    if len(rows) < 2 or norm.running_mean is None or norm.running_var is None:
        return None
    var, mean = torch.var_mean(rows.float(), 0, correction=0)
    spread = var.mean().clamp(min=1e-12)
    distance = (norm.running_mean - mean).square().mean() / spread
    count = torch.full_like(spread, len(rows))
    return torch.stack([distance, norm.running_var.mean() / spread, count])


# --- the norm's statistics ---
def shorten_memory(norm: nn.Module | None, steps: int | None) -> None:
    """Raise a batch norm's momentum in a run so short that its beginning would still count."""
    if steps is not None and isinstance(norm, _BatchNorm):
        short = _MEMORY / whole("steps", steps, least=1)
        norm.momentum = max(norm.momentum or 0.0, min(0.5, short))


@guarded("recalibrate() failed in your model or data")
def recalibrate(model: nn.Module, loader: Iterable[Any]) -> nn.Module:
    """Measure the statistics of the norm before the head anew, as the mean over batches.

    The running statistics lag behind the weights, which shows after short runs and with a moving
    average of the weights. Call it after training, before :func:`tstar.fold`. Everything but these
    statistics is as before; the rest of the model runs in eval mode. A model without such a norm
    comes back as it is.

    Args:
        model: a tempered model; changed in place and returned.
        loader: batches as a DataLoader gives them, [inputs, labels], or what the model takes:
            tensors, tuples of arguments, mappings of keywords. Use the training data.

    Raises:
        TstarError: a batch does not fit or is not finite; the statistics stay as they were.
    """
    inner = layers.unwrap(model)
    heads = list(layers.working_heads(inner).values())
    norms = [head.norm for head in heads if isinstance(head.norm, _BatchNorm)]
    if not norms:
        return model
    for head in heads:
        head.guard = None  # what it would warn of is done here
    before = [(norm, norm.momentum, copy.deepcopy(norm.state_dict())) for norm in norms]
    try:
        with layers.in_mode(inner), torch.no_grad(), layers.runs_on("every batch of loader"):
            for norm in norms:
                norm.train()
                norm.reset_running_stats()
                norm.momentum = None  # the mean over all batches
            for batch in loader:
                for head in heads:
                    head.mask = None  # of the last batch; a hook of mask_padding sets this one's
                layers.call(inner, layers.inputs_of(batch), heads[0].temperature.device)
        sums = [b.sum() for norm in norms for b in norm.buffers()]
        if not all(norm.num_batches_tracked for norm in norms) or not all(map(math.isfinite, sums)):
            raise TstarError(
                "recalibrate needs at least one batch of two samples or more, all finite; check "
                "your data."
            )
    except BaseException:
        for norm, _, state in before:
            norm.load_state_dict(state)
        raise
    finally:
        for norm, momentum, _ in before:
            norm.momentum = momentum
    return model


@guarded("mask_padding() failed in your model")
def mask_padding(model: nn.Module, keyword: str = "attention_mask") -> nn.Module:
    """From now on, each call's ``keyword`` argument says which positions the norm sees.

    For heads with features of shape (B, L, M): token classification, and the decoders that score
    every token and keep the last one's logits. Positions whose mask is zero count in no statistic;
    in training their logits are the bias over T. Eval mode and folding are unaffected. Call it
    after adding adapters.

    Args:
        model: a tempered model; one that is not is left alone.
        keyword: the argument of its ``forward``, given by name or by position (by name through a
            wrapper such as DDP), that holds the (B, L) mask.
    """
    inner = layers.unwrap(model)
    names = inspect.signature(inner.forward).parameters
    if keyword not in names and not any(p.kind is p.VAR_KEYWORD for p in names.values()):
        raise TstarError(
            f"keyword must name an argument of the model's forward, got {keyword!r}; it has "
            f"{', '.join(map(repr, names)) or 'none'}."
        )
    inner.register_forward_pre_hook(partial(_take, keyword), with_kwargs=True)
    return model


def _take(keyword: str, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before each call: hand the mask on, to heads looked up anew, since a copy has its own."""
    mask = kwargs.get(keyword)
    if mask is None and args:
        names = inspect.signature(model.forward).parameters
        mask = dict(zip(names, args, strict=False)).get(keyword)
    for head in layers.working_heads(model).values():
        head.mask = mask
