"""How a tempered training goes: guards of its first steps, recalibrate, masks of padding.

Belongs here: whatever looks at a training without changing its gradients. What it finds is a
warning, once, with the way out.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tstar import output_layer as layers
from tstar.advice import Recommendation
from tstar.checks import whole
from tstar.errors import TstarError, guarded
from tstar.head import TemperedHead, class_dim, expect_left, warn
from tstar.training import groups_of, highest_rate

_MEMORY = 10  # batches after which the running statistics should have forgotten most
_FIRST, _EVERY = 20, 64  # steps that are looked at: the first ones, and then one of so many
_SETTLED = 50  # batches after which the initial statistics hardly count: 0.9⁵⁰ = 0.5 %
_NEAR = 0.05  # a schedule may pass its peak between two steps


# --- does the advice fit, and does the optimizer train the head? ---


# Output layers whose first steps are awaited: what they should train with, and who stepped.
_awaiting: WeakKeyDictionary[nn.Module, tuple[dict[str, float], WeakSet[Any]]] = WeakKeyDictionary()
_hooks: list[Any] = []


def numbers_of(advice: Recommendation | None) -> dict[str, float]:
    """What an advice wants the output layer to train with: the rate, and a decay that it sets."""
    if advice is None or advice.leave:
        return {}
    wanted = {"lr": advice.head_lr or advice.lr, "weight_decay": advice.weight_decay}
    if advice.weight_decay == advice.training.weight_decay:
        del wanted["weight_decay"]
    return {name: value for name, value in wanted.items() if value is not None}


def expect_update(head: nn.Module, wanted: dict[str, float]) -> None:
    """At the first steps: warn if no optimizer trains the head, or not with these numbers."""
    _awaiting[head] = wanted, WeakSet()
    if isinstance(head, TemperedHead) and head.guard is None:
        head.guard = Guard(wanted)
    if not _hooks:
        _hooks.append(register_optimizer_step_pre_hook(_before_step))


def trust_rate(head: nn.Module) -> None:
    """Await no rate: it was set where a scheduler has it, too."""
    _awaiting.get(head, ({}, None))[0].clear()


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    """When an optimizer steps again, all of a loop have stepped: what none holds is missed."""
    if torch.compiler.is_compiling():
        return
    idle = all(p.grad is None for group in optimizer.param_groups for p in group["params"])
    for head, (wanted, stepped) in list(_awaiting.items()):
        again = optimizer in stepped
        stepped.add(optimizer)
        _check_numbers(head, optimizer, wanted)
        frozen = not any(p.requires_grad for p in head.parameters())
        if not isinstance(head, TemperedHead):
            if not wanted:
                del _awaiting[head]
        elif any(p.grad is not None for p in head.parameters()) and (idle or again):
            del _awaiting[head]
            if head.guard is not None:
                head.guard.check_use(head)
            _warn_of_missed(head, stepped)
        elif head.training and not idle and frozen and _batches_seen(head):
            del _awaiting[head]
            warn(
                "The output layer was frozen after it was tempered, so that T has no effect on "
                "it, and an adapter saves neither it nor the norm's statistics. With PEFT, name "
                "it in modules_to_save or set the task type."
            )
    if not _awaiting:
        _hooks.pop().remove()


def _check_numbers(head: Any, optimizer: Any, wanted: dict[str, float]) -> None:
    """Once, if the optimizer trains the head: warn if rate or decay are not as advised."""
    for group in (optimizer.param_groups[i] for i in groups_of(optimizer, head)[:1]):
        found = {"lr": highest_rate(group), "weight_decay": group.get("weight_decay") or 0.0}
        off = [n for n, value in wanted.items() if not math.isclose(found[n], value, rel_tol=_NEAR)]
        if off:
            advised, used = (", ".join(f"{n}={x[n]:g}" for n in off) for x in (wanted, found))
            warn(
                f"The advice is {advised} for the output layer, but the optimizer has {used}: call "
                "advice.apply(model, optimizer, scheduler), or advice.hf_args(args) for "
                "transformers, or set it yourself in the optimizer and in a scheduler's max_lr. "
                "If you warm up by hand, this may be right."
            )
        wanted.clear()


def _warn_of_missed(head: TemperedHead, optimizers: Iterable[Any]) -> None:
    held = {id(p) for each in optimizers for g in each.param_groups for p in g["params"]}
    named = head.named_parameters()
    missed = [name for name, p in named if p.grad is not None and id(p) not in held]
    if missed:
        warn(
            f"The optimizer does not train the tempered head ({', '.join(missed)}); was it built "
            "before tempering? Build it after tstar.temper, or pass it: tstar.temper(model, T, "
            "optimizer=optimizer)."
        )


def warn_of_misfit(temperature: Any, heads: Sequence[layers.Head]) -> None:
    """Warn if an advice is for another M or K; a number is for all."""
    about = temperature.facts if isinstance(temperature, Recommendation) else heads[0]
    M, K = about.num_features, about.num_classes
    if (M, K) not in {(h.num_features, h.num_classes) for h in heads}:
        warn(
            f"The advice is for M = {M}, K = {K}, but it is applied to {heads[0]}, for which "
            "another T may be right; call tstar.recommend for this model."
        )


def join_optimizer(optimizer: Any, head: TemperedHead) -> None:
    """Give the norm's parameters to the group that trains the head's bias.

    Without a bias: to one of norms and biases at the rate of the head's weight, or to the weight's.
    """
    norm = {} if head.norm is None else dict(head.norm.named_parameters())
    like = head.bias if head.bias is not None else head.weight
    group = next(g for g in optimizer.param_groups if any(p is like for p in g["params"]))
    for other in optimizer.param_groups if head.bias is None else ():
        if other["lr"] == group["lr"] and all(p.ndim < 2 for p in other["params"]):
            group = other
    if "param_names" in group:  # torch keeps names if it was given named parameters
        pairs = [zip(g["params"], g["param_names"], strict=True) for g in optimizer.param_groups]
        stem = next(n for pair in pairs for p, n in pair if p is like).rpartition(".")[0]
        group["param_names"].extend(f"{stem}.norm.{name}" for name in norm)
    group["params"].extend(norm.values())


def _batches_seen(head: TemperedHead) -> int | None:
    seen = getattr(head.norm, "num_batches_tracked", None)
    return int(seen) if isinstance(seen, Tensor) and not seen.is_meta else None


# --- do the batches suit the norm? ---
class Guard:
    """Looks at a head's first training batches, then at one of 64, and warns once.

    A BatchNorm trusts its batches. The logits' gradient shows the labels, its only negative
    entries: whether a batch holds few of the classes, and which positions have none (padding).
    Statistics that lag behind are seen in the batch. Numbers stay on their device until needed.
    """

    def __init__(self, wanted: dict[str, float]) -> None:
        self.wanted = wanted  # what the optimizer should train the head with
        self.calls = 0  # training batches that reached the head
        self.stepped = False  # whether an optimizer was seen to train the head
        self._labels: list[Tensor] = []  # how often each class is, in the batches looked at
        self._gap: Tensor | None = None  # of the last batch: to the running mean, in deviations²
        self._told: set[str] = set()

    def look(self, head: TemperedHead, features: Tensor, logits: Tensor) -> None:
        """Called with each training batch. What the guard cannot look at, it leaves alone."""
        self.calls += 1
        if self.calls == 1 and head not in _awaiting:  # a copy, perhaps in another process
            expect_update(head, self.wanted)
        if not isinstance(head.norm, _BatchNorm) or (self.calls > _FIRST and self.calls % _EVERY):
            return
        if logits.is_meta:  # shapes without numbers
            return
        try:
            axis = class_dim(head.layer)
            if head.mask is None:
                self._gap = _gap(head.norm, _some_rows(features.detach(), axis))
            if logits.requires_grad:
                keep: Any = logits.register_hook
                tokens = features.ndim == 3 and axis == -1 and head.mask is None
                keep(partial(self._keep_labels, axis, tokens))
        except (RuntimeError, TypeError):  # functorch, or a tensor on another device
            return

    def _keep_labels(self, axis: int, tokens: bool, gradient: Tensor) -> None:
        if tokens and self.calls <= _FIRST and bool((gradient[:, -1].amin(-1) >= 0).any()):
            self._say(
                "padding",
                "The norm before the output layer sees positions without a label at the end of "
                "sequences, and such padding counts in its statistics: call "
                "tstar.monitor.mask_padding(model), or set the head's mask before each call.",
            )
        rows = gradient.movedim(axis, -1)
        rows = rows.reshape(len(rows) if rows.ndim > 1 else 1, -1, rows.shape[-1]).sum(1)
        least, label = rows.min(1)  # of each sample
        counts = torch.zeros_like(rows[0], dtype=torch.float32)
        self._labels.append(counts.index_add_(0, label, (least < 0).float()))
        if len(self._labels) == _FIRST:
            self._check_order()

    def _check_order(self) -> None:
        """Two samples of a batch should be of one class no oftener than two of different batches.

        How much oftener, from 0 to 1, is the intraclass correlation. Two classes in each batch of
        ten give 0.45; there a BatchNorm cost 12 points. Noise is about sqrt(2/batches)/samples.
        """
        counts = torch.stack(self._labels).double().cpu()
        self._labels.clear()
        counts = counts[counts.sum(1) > 1]
        n, sizes = len(counts), counts.sum(1, keepdim=True)
        if n < 4:
            return
        inside = float((counts * (counts - 1) / (sizes * (sizes - 1))).sum(1).mean())
        shares = counts / sizes
        across = float(shares.sum(0).square().sum() - shares.square().sum()) / (n * (n - 1))
        noise = math.sqrt(2 / n) / float(sizes.mean())
        if inside - across > (0.37 + 3.5 * noise) * (1 - across):
            self._say(
                "ordered",
                "Each batch holds samples of few classes, so that the norm before the output layer "
                "sees others in each batch and all of them in eval mode: shuffle the training "
                "data (shuffle=True), or temper with norm=None.",
            )

    def check_use(self, head: TemperedHead) -> None:
        """At the second step: the head has gradients, but was it called?"""
        self.stepped = self.calls > 0 or _batches_seen(head) != 0  # no calls if it is compiled
        if not self.stepped:
            self._say(
                "unused",
                "The model trains its output layer, but does not call the tempered head: it uses "
                "the layer's weight by itself, as in F.linear(h, self.fc.weight), or holds the "
                "layer elsewhere. Norm and T have no effect, and folding would change the logits: "
                "call the layer, or undo it with tstar.untemper(model).",
            )

    def leave_training(self, head: TemperedHead) -> None:
        """At the switch to eval mode: has the norm learned, and what the batches are like?"""
        if self._labels:
            self._check_order()
        if self.stepped and _batches_seen(head) == 0:
            self._say(
                "unseen",
                "The head was trained, but the norm before it has seen no batch: batches of one "
                "sample, a helper that freezes BatchNorm, or vmap. Use larger batches, keep the "
                "norm out of the helper, or temper with norm=None.",
            )
        self.check_last_batch(head, _SETTLED)

    def check_last_batch(self, head: TemperedHead, least: int = 10) -> None:
        """After so many batches: warn if the last one is far from the norm's statistics."""
        if self._gap is None or (_batches_seen(head) or 0) < least:
            return
        distance, ratio, samples = self._gap.tolist()
        if distance > 0.5 + 4 / samples or not 0.1 <= ratio <= 10:  # there accuracy fell by 5
            self._say(
                "gap",
                "The statistics of the norm before the output layer are far from those of the "
                f"last batch (the mean by {math.sqrt(distance):.2g} deviations, the variance "
                f"{ratio:.2g} times as large), so that eval mode gives other logits: call "
                "tstar.monitor.recalibrate(model, loader), shuffle the data, or lower the "
                "learning rate.",
            )

    def _say(self, what: str, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            warn(text)


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


@guarded("tstar.recalibrate stopped in what you passed")
def recalibrate(model: nn.Module, loader: Iterable[Any]) -> nn.Module:
    """Measure the statistics of the norm before the head anew, as the mean over batches.

    The running statistics lag behind the weights, which shows after short runs and with a moving
    average of the weights. Call it after training, before :func:`tstar.fold`. Everything but these
    statistics is as before; the rest of the model runs in eval mode.

    Args:
        model: a tempered model; changed in place and returned.
        loader: batches as a DataLoader gives them, [inputs, labels], or what the model takes:
            tensors, tuples of arguments, mappings of keywords. Use the training data.

    Raises:
        TstarError: a batch does not fit or is not finite; the statistics stay as they were.
    """
    inner = layers.unwrap(model)
    heads = list(layers.working_heads(inner).values())
    if not heads:
        expect_left(inner)
        return model
    norms = [head.norm for head in heads if isinstance(head.norm, _BatchNorm)]
    if not norms:
        raise TstarError("The model has no batch norm before its output layer to recalibrate.")
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


class Masking:
    """What :func:`mask_padding` began; ``remove()`` ends it."""

    def __init__(self, model: nn.Module, keyword: str) -> None:
        self._model = model
        self._hook = model.register_forward_pre_hook(partial(_take, keyword), with_kwargs=True)

    def remove(self) -> None:
        self._hook.remove()
        for head in layers.working_heads(self._model).values():
            head.mask = None


@guarded("tstar.mask_padding stopped in what you passed")
def mask_padding(model: nn.Module, keyword: str = "attention_mask") -> Masking:
    """From now on, each call's ``keyword`` argument says which positions the norm sees.

    For heads with features of shape (B, L, M): token classification, and the decoders that score
    every token and keep the last one's logits. Positions whose mask is zero count in no statistic;
    in training their logits are the bias over T. Eval mode and folding are unaffected. Call it on
    the model that the training loop calls, after adding adapters.

    Args:
        model: a tempered model.
        keyword: the argument of its ``forward``, given by name or by position (by name through a
            wrapper such as DDP), that holds the (B, L) mask.
    """
    if not layers.working_heads(model):
        expect_left(model)
    names = inspect.signature(model.forward).parameters
    if keyword not in names and not any(p.kind is p.VAR_KEYWORD for p in names.values()):
        raise TstarError(
            f"keyword must name an argument of the model's forward, got {keyword!r}; it has "
            f"{', '.join(map(repr, names)) or 'none'}."
        )
    return Masking(model, keyword)


def _take(keyword: str, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before each call: hand the mask on, to heads looked up anew, since a copy has its own."""
    mask = kwargs.get(keyword)
    if mask is None and args:
        names = inspect.signature(model.forward).parameters
        mask = dict(zip(names, args, strict=False)).get(keyword)
    for head in layers.working_heads(model).values():
        head.mask = mask
