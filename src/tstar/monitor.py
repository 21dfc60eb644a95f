"""How a tempered training goes: guards of its first steps, watch, recalibrate, masks of padding.

Belongs here: whatever looks at a training without changing its gradients. What it finds is a
warning, once, with the way out.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tstar import output_layer as layers
from tstar.checks import whole
from tstar.errors import TstarError, guarded
from tstar.head import TemperedHead, class_dim, expect_left, warn
from tstar.training import highest_rate

_MEMORY = 10  # batches after which the running statistics should have forgotten most
_FIRST, _EVERY = 20, 16  # steps that are looked at: the first ones, and then one of so many
_SETTLED = 50  # batches after which the initial statistics hardly count: 0.9⁵⁰ = 0.5 %
_NEAR = 0.05  # a schedule may pass its peak between two steps


# --- does the advice fit, and does the optimizer train the head? ---


# Heads whose first steps are awaited: the rates that are advised, and who stepped.
_awaiting: WeakKeyDictionary[TemperedHead, tuple[list[float], WeakSet[Any]]] = WeakKeyDictionary()
_hooks: list[Any] = []


def expect_update(head: TemperedHead, advice: Any = None) -> None:
    """At the first steps: warn if no optimizer trains the head, or not at the advice's rate."""
    rates = (getattr(advice, "lr", None), getattr(advice, "head_lr", None))
    _awaiting[head] = [rate for rate in rates if rate is not None], WeakSet()
    if not _hooks:
        _hooks.append(register_optimizer_step_pre_hook(_before_step))


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    """When an optimizer steps again, all of a loop have stepped: what none holds is missed."""
    if torch.compiler.is_compiling():
        return
    idle = all(p.grad is None for group in optimizer.param_groups for p in group["params"])
    for head, (rates, stepped) in list(_awaiting.items()):
        again = optimizer in stepped
        stepped.add(optimizer)
        _check_rate(head, optimizer, rates)
        frozen = not any(p.requires_grad for p in head.layer.parameters())
        if any(p.grad is not None for p in head.parameters()) and (idle or again):
            del _awaiting[head]
            if head.guard is not None:
                head.guard.stepped = True
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


def _check_rate(head: TemperedHead, optimizer: Any, rates: list[float]) -> None:
    """Once, if the optimizer trains the head: warn if its rate is not one that was advised."""
    own = {id(p) for p in head.layer.parameters()}
    groups = [g for g in optimizer.param_groups if any(id(p) in own for p in g["params"])]
    for rate in map(highest_rate, groups):
        if rates and not any(math.isclose(rate, wanted, rel_tol=_NEAR) for wanted in rates):
            warn(
                f"The advice is for a learning rate of {rates[0]:g}, but the optimizer trains the "
                f"output layer at {rate:g}, for which T is not right: set lr=advice.lr in every "
                "group, before a scheduler is built, and a scheduler's max_lr too."
            )
            break
    if groups:
        rates.clear()


def _warn_of_missed(head: TemperedHead, optimizers: Iterable[Any]) -> None:
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    held = {id(p) for group in groups for p in group["params"]}
    trained = ((name, p) for name, p in head.named_parameters() if p.requires_grad)
    missed = [name for name, p in trained if p.grad is not None and id(p) not in held]
    if missed:
        warn(
            f"The optimizer does not train the tempered head ({', '.join(missed)}); was it built "
            "before tempering? Build it after tstar.temper, or pass it: tstar.temper(model, T, "
            "optimizer=optimizer)."
        )


def warn_of_misfit(advice: Any, heads: Sequence[layers.Head]) -> None:
    """Warn if an advice is for another M or K; a number is for all."""
    facts = getattr(advice, "facts", heads[0])
    M, K = facts.num_features, facts.num_classes
    if (M, K) not in {(h.num_features, h.num_classes) for h in heads}:
        warn(
            f"The advice is for M = {M}, K = {K}, but it is applied to {heads[0]}, for which "
            "another T may be right; call tstar.recommend for this model."
        )


def join_optimizer(optimizer: Any, head: TemperedHead) -> None:
    """Give the norm's parameters to the group that trains the head's bias, or its weight."""
    norm = {} if head.norm is None else dict(head.norm.named_parameters())
    like = head.bias if head.bias is not None else head.weight
    group = next(g for g in optimizer.param_groups if any(p is like for p in g["params"]))
    if "param_names" in group:  # torch keeps names if it was given named parameters
        at = next(i for i, p in enumerate(group["params"]) if p is like)
        stem = group["param_names"][at].rpartition(".")[0]
        group["param_names"].extend(f"{stem}.norm.{name}" for name in norm)
    group["params"].extend(norm.values())


def _batches_seen(head: TemperedHead) -> int | None:
    seen = getattr(head.norm, "num_batches_tracked", None)
    return int(seen) if isinstance(seen, Tensor) and not seen.is_meta else None


# --- do the batches suit the norm? ---
class Guard:
    """Looks at a head's first training batches, then at one of sixteen, and warns once.

    A BatchNorm trusts its batches. Batches of one class each are seen in the logits' gradient,
    whose least entry is the sample's label; padding in the model's ``attention_mask``; statistics
    that lag behind in how far the batch is from them. Numbers stay on their device until needed.
    """

    def __init__(self) -> None:
        self.calls = 0  # training batches that reached the head
        self.padded = False  # whether the present call has a mask with zeros
        self.stepped = False  # whether an optimizer was seen to train the head
        self.model_calls = 0  # that were looked at
        self._shares: list[Tensor] = []  # of each class, in the batches looked at
        self._gap: Tensor | None = None  # of the last batch: to the running mean, in deviations²
        self._told: set[str] = set()

    def look(self, head: TemperedHead, features: Tensor, logits: Tensor) -> None:
        """Called with each training batch. What the guard cannot look at, it leaves alone."""
        self.calls += 1
        if not isinstance(head.norm, _BatchNorm) or (self.calls > _FIRST and self.calls % _EVERY):
            return
        try:
            if self.padded and features.ndim == 3 and head.mask is None:
                self._say(
                    "padding",
                    "The norm before the output layer sees every position of a padded batch, and "
                    "padding counts in its statistics: call tstar.monitor.mask_padding(model).",
                )
            axis = class_dim(head.layer)
            if head.mask is None:
                self._gap = _gap(head.norm, _some_rows(features.detach(), axis))
            if logits.requires_grad:
                keep: Any = logits.register_hook
                keep(partial(self._keep_labels, axis))
        except (RuntimeError, TypeError):  # functorch, or a tensor on another device
            return

    def _keep_labels(self, axis: int, gradient: Tensor) -> None:
        rows = _some_rows(gradient, axis)
        self._shares.append(F.one_hot(rows.argmin(1), rows.shape[1]).float().mean(0))
        if len(self._shares) < _FIRST:
            return
        largest, labels = torch.stack(self._shares).max(1)
        self._shares.clear()
        alone = largest > 0.9
        if bool(alone.float().mean() > 0.5) and len({*labels[alone].tolist()}) > 1:
            self._say(
                "ordered",
                "Most batches hold samples of one class alone, so that the norm before the output "
                "layer sees another class in each batch and none of them in eval mode: shuffle "
                "the training data (shuffle=True), or temper with norm=None.",
            )

    def leave_training(self, head: TemperedHead) -> None:
        """At the switch to eval mode: has the norm learned, and what the batches are like?"""
        if self.stepped and _batches_seen(head) == 0:
            self._say(
                "unseen",
                "The head was trained, but the norm before it has seen no batch: batches of one "
                "sample, a helper that freezes BatchNorm, or vmap. Use larger batches, keep the "
                "norm out of the helper, or temper with norm=None.",
            )
        self.check_last_batch(head)

    def check_last_batch(self, head: TemperedHead) -> None:
        """Warn if the last batch that was looked at is far from the norm's statistics."""
        if self._gap is None or (_batches_seen(head) or 0) < _SETTLED:
            return
        distance, ratio, samples = self._gap.tolist()
        if distance > 1 + 8 / samples or not 0.1 <= ratio <= 10:
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


def guard_first_steps(model: nn.Module) -> None:
    """Watch the first training steps of every tempered head, and the first calls of the model."""
    model.register_forward_pre_hook(_before_call, with_kwargs=True)
    for head in layers.working_heads(model).values():
        head.guard = Guard()


def stop_guarding(model: nn.Module) -> None:
    """Take the hook on the model's calls away; a handle would not outlive a copy of the model."""
    for module in model.modules():
        for key, hook in list(module._forward_pre_hooks.items()):
            if hook is _before_call:
                del module._forward_pre_hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)


def _before_call(model: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
    """Before the first training calls: did the last one reach a head, and is this one padded?"""
    if torch.compiler.is_compiling() or not model.training:
        return
    guards = [h.guard for h in layers.working_heads(model).values() if h.guard is not None]
    mask = kwargs.get("attention_mask")
    padded = isinstance(mask, Tensor) and not mask.is_meta and bool((mask == 0).any())
    for guard in guards:
        guard.padded = padded
        guard.model_calls += 1
    calls = max((guard.model_calls for guard in guards), default=_FIRST)
    unused = calls == 3 and not any(guard.calls for guard in guards)
    if calls >= _FIRST or unused:
        stop_guarding(model)
    if unused:
        warn(
            "The model ran, but did not call its tempered head: it uses the layer's weight by "
            "itself, as in F.linear(h, self.fc.weight), or holds the layer elsewhere. Norm and T "
            "have no effect, and folding would change the logits: call the layer, or undo it with "
            "tstar.untemper(model)."
        )


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


# --- watch ---
@dataclass(frozen=True)
class Sight:
    """What a look at one tempered head showed, since the look before."""

    head: str  # its path in the model
    temperature: float
    moved: float  # how far the layer's weight has moved, relative to its size
    batches: int | None  # that the norm has seen; None without a batch norm
    problems: tuple[str, ...]  # a sentence for each thing that is wrong


class Watch:
    """What :func:`watch` returns; call it at the end of each epoch."""

    def __init__(self, model: nn.Module) -> None:
        self._model = layers.unwrap(model)
        if not layers.working_heads(self._model):
            expect_left(self._model)
        self._before = {
            path: _state(head) for path, head in layers.working_heads(self._model).items()
        }

    def __call__(self) -> tuple[Sight, ...]:
        """Look at every tempered head. A problem is also a warning."""
        heads = layers.working_heads(self._model)
        sights = tuple(self._look(path, head) for path, head in heads.items())
        for problem in (problem for sight in sights for problem in sight.problems):
            warn(problem)
        return sights

    def _look(self, path: str, head: TemperedHead) -> Sight:
        weight, seen = _state(head)
        old, seen_before = self._before.get(path, (weight, seen))
        self._before[path] = weight, seen
        moved = float((weight - old).double().norm() / old.double().norm().clamp(min=1e-30))
        batches = None if seen is None or seen_before is None else seen - seen_before
        problems = []
        if moved == 0:
            problems.append(f"The output layer {path!r} has not moved: no optimizer trains it.")
        elif batches == 0:
            problems.append(
                f"The norm before {path!r} has seen no batch: batches of one sample, or a helper "
                "that freezes BatchNorm."
            )
        return Sight(path, float(head.temperature), moved, batches, tuple(problems))


@guarded("tstar.watch stopped in what you passed")
def watch(model: nn.Module) -> Watch:
    """A monitor of a tempered model: call what it returns at the end of each epoch.

    It tells whether the norm before the head sees batches, and whether the head learns. Trainers
    take ``WatchCallback`` of :mod:`tstar.lab.callbacks`. In a model that was left as it is, on
    advice, it sees nothing.

    >>> import torch, tstar
    >>> model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), 2.0)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> look = tstar.watch(model)
    >>> for _ in range(2):
    ...     loss = nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.arange(16) % 3)
    ...     loss.backward()
    ...     optimizer.step()
    >>> (sight,) = look()
    >>> sight.batches, sight.problems
    (2, ())
    """
    return Watch(model)


def _state(head: TemperedHead) -> tuple[Tensor, int | None]:
    return head.weight.detach().clone(), _batches_seen(head)


# --- the norm's statistics ---
def shorten_memory(norm: nn.Module | None, steps: int | None) -> None:
    """Raise a batch norm's momentum in a run so short that its beginning would still count."""
    if steps is not None and isinstance(norm, _BatchNorm):
        short = _MEMORY / whole("steps", steps, least=1)
        norm.momentum = max(norm.momentum or 0.0, min(0.5, short))


@guarded("tstar.recalibrate stopped in what you passed")
def recalibrate(
    model: nn.Module, loader: Iterable[Any], *, batches: int | None = None
) -> nn.Module:
    """Measure the statistics of the norm before the head anew, as the mean over batches.

    The running statistics lag behind the weights, which shows after short runs and with a moving
    average of the weights. Call it after training, before :func:`tstar.fold`. Everything but these
    statistics is as before; the rest of the model runs in eval mode.

    Args:
        model: a tempered model; changed in place and returned.
        loader: batches as a DataLoader gives them, [inputs, labels], or what the model takes:
            tensors, tuples of arguments, mappings of keywords. Use the training data.
        batches: how many of them; all by default.

    Raises:
        TstarError: a batch does not fit or is not finite; the statistics stay as they were.
    """
    inner = layers.unwrap(model)
    heads = list(layers.working_heads(inner).values())
    batches = None if batches is None else whole("batches", batches, least=1)
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
            for batch in islice(loader, batches):
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
