"""Run a model once to see which layer's output becomes the logits, and leave no trace of having run it.

The output of every layer that could be an output layer is marked; the autograd graph then leads from the
logits back to the marks. What may lie between is what leaves logits logits: reshaping, pooling, selecting,
an activation, arithmetic with constants. Anything else ends the walk.
"""

from __future__ import annotations

import random
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.surgery.layers import is_output_layer

# Names of autograd nodes, without "Backward0", that a walk from the logits passes through.
_PASSES = re.compile(
    r"(Unsafe)?(View|ReshapeAlias|Squeeze|Unsqueeze|Permute|Transpose|T|Mt|Expand|AsStrided|Slice|Select|Index"
    r"|IndexSelect|Gather|Split|SplitWithSizes|Unbind|Narrow|Clone|Alias|ToCopy|Copy|CopySlices|Stack|Cat|Repeat"
    r"|Mean|Sum|Amax|Max|Min|Logsumexp|(Mkldnn)?(Adaptive)?(Avg|Max)Pool\dd?D?(WithIndices)?"
    r"|Upsample\w*|Relu|LeakyRelu|Hardtanh|Clamp\w*|Sigmoid|Tanh|Softmax|LogSoftmax|NativeDropout|MaskedFill|Where"
    r"|Div|Mul|Add|Sub|Rsub|Neg|AccumulateGrad)",
    re.IGNORECASE,
)
# One model at a time: a probe changes modes, filters of warnings and generators, and sets them back as it found them.
ALONE = threading.RLock()
# What a probe or a trace calls what makes probabilities of logits, what scales them, what sets their shape anew.
ENDS = {"softmax", "sigmoid"}
SCALES = {"mul", "div"}
RESHAPES = {"view", "unsafeview", "reshapealias", "reshape", "unflatten"}

# What a node of a graph is ("found", "blocked" or "passed"), its name, and the nodes behind it.
Look = tuple[str, str, list[Any]]


@dataclass(frozen=True)
class Seen:
    """What a probe saw: the layers the logits come from, what else they depend on directly, what is done to their output."""

    paths: tuple[str, ...]
    blocked: tuple[str, ...]
    not_affine: tuple[str, ...]
    passed: tuple[str, ...] = ()


def probe(
    model: nn.Module, example: Any, *, training: bool = False, only: str | None = None
) -> Seen:
    """Run ``model`` on ``example`` and report which layers its logits come from.

    With ``training=True`` the model runs in training mode and every tensor of its output is followed, so
    that auxiliary classifiers are seen as well. ``only`` names a layer: of the tensors that come from it, the logits.
    """
    marks: dict[Any, str] = {}
    not_affine: list[str] = []
    hooks = [
        module.register_forward_hook(_marker(path, marks, not_affine))
        for path, module in model.named_modules()
        if is_output_layer(module)
    ]
    try:
        with undisturbed(model, training=training), torch.enable_grad():
            output = call(model, example)
    finally:
        for hook in hooks:
            hook.remove()
    odd = tuple(dict.fromkeys(not_affine))
    if training and only is None:
        return _walk(tensors_in(output), marks, odd)
    ends = _could_be_logits(output) if only is None else tensors_in(output)
    candidates = [_walk([end], marks, odd, only) for end in ends]
    leading = [seen for seen in candidates if (seen.paths if only is None else only in seen.paths)]
    leading = leading or candidates[:1]
    if only is None and len({seen.paths for seen in leading}) > 1:
        paths = list(dict.fromkeys(path for seen in leading for path in seen.paths))
        raise TstarError(
            f"The model returns several tensors that could be the logits (they come from {', '.join(map(repr, paths))}); "
            f"pass head={paths[-1]!r} to name the output layer (temper also takes a list of several)."
        )
    # Of logits and their probabilities, the logits.
    return next((seen for seen in leading if not ENDS & {*seen.passed}), leading[0])


def _marker(
    path: str, marks: dict[Any, str], not_affine: list[str]
) -> Callable[..., Tensor | None]:
    def hook(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor | None:
        if not isinstance(output, Tensor) or not inputs or not isinstance(inputs[0], Tensor):
            return None
        if not _computes_affine(module, inputs[0], output):
            not_affine.append(path)
            return None
        # A fresh leaf cuts the graph here, so that the walk needs no gradient of any parameter; the clone
        # after it may be changed in place by what follows.
        marked = output.detach().requires_grad_().clone()
        marks[marked.grad_fn] = path
        return marked

    return hook


def _computes_affine(module: nn.Module, features: Tensor, output: Tensor) -> bool:
    """Whether a layer does what its type says. A subclass with its own ``forward`` is compared with W·h + b."""
    stock = next(k for k in (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d) if isinstance(module, k))
    if type(module).forward is stock.forward or output.is_meta:
        return True
    with torch.no_grad():
        if isinstance(module, nn.Linear):
            expected = F.linear(features, module.weight.to(features.dtype), module.bias)
        else:
            plain: Callable[..., Tensor] = stock.forward
            expected = plain(module, features)
        return expected.shape == output.shape and torch.allclose(
            expected.float(), output.float(), rtol=1e-3, atol=1e-3
        )


def _walk(
    ends: list[Tensor],
    marks: dict[Any, str],
    not_affine: tuple[str, ...],
    only: str | None = None,
) -> Seen:
    """From the logits' autograd nodes back to the marks."""

    def look(node: Any) -> Look:
        if node in marks:
            return "found", marks[node], []
        name = re.sub(r"Backward\d*$", "", type(node).__name__)
        if _PASSES.fullmatch(name):
            return "passed", name.lower(), [parent for parent, _ in node.next_functions]
        return "blocked", name, []

    return walk([end.grad_fn for end in ends], look, not_affine, only)


def walk(
    nodes: list[Any],
    look: Callable[[Any], Look],
    not_affine: tuple[str, ...] = (),
    only: str | None = None,
) -> Seen:
    """From the logits back to the layers: the paths found, what barred the way, what lies between them (or ``only`` one)."""
    seen: dict[Any, tuple[str, str]] = {}
    after: dict[Any, list[Any]] = {}
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        kind, name, parents = look(node)
        seen[node] = kind, name
        for parent in parents:
            after.setdefault(parent, []).append(node)
        nodes.extend(parents)
    # Between are the nodes that lead to a layer: the softmax of a gate beside it, say, does not.
    between: set[Any] = set()
    reached = [n for n, (kind, path) in seen.items() if kind == "found" and only in (None, path)]
    while reached:
        node = reached.pop()
        if node not in between:
            between.add(node)
            reached.extend(after.get(node, ()))

    def names(wanted: str, among: Iterable[Any]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(seen[n][1] for n in among if seen[n][0] == wanted))

    passed = names("passed", [node for node in seen if node in between])
    return Seen(names("found", seen), names("blocked", seen), not_affine, passed)


def inputs_of(batch: Any) -> Any:
    """What a model takes of a batch: a tuple by position, a mapping by keyword, of a DataLoader's list [inputs, labels] the first.

    What a longer list holds is not known: inputs, labels, weights or indices. Taking some of them would give other
    features than those that are trained on, without a word.
    """
    if isinstance(batch, list) and batch:
        if len(batch) > 2:
            raise TstarError(
                f"A batch that is a list must be [inputs, labels], got {len(batch)} parts, of which it is not known which "
                "are inputs; pass what the model takes: a tuple such as (ids, mask), or a dict of keywords. For all "
                "batches of a loader: ((ids, mask) for ids, mask, labels in loader)."
            )
        first = batch[0]
        return (first,) if isinstance(first, list) else first  # the same when asked again
    return dict(batch) if isinstance(batch, Mapping) else batch


def call(model: nn.Module, example: Any) -> Any:
    """``model`` on an example: a mapping by keyword, a tuple by position, anything else as the one argument."""
    if isinstance(example, Mapping):
        return model(**example)
    return model(*example) if isinstance(example, tuple) else model(example)


@contextmanager
def runs_on(what: str) -> Iterator[None]:
    """Whatever a model raises on an input that was given for it becomes one error that says so."""
    try:
        yield
    except TstarError:
        raise
    except Exception as error:
        raise TstarError(
            f"The model must run on {what}, but it raised {type(error).__name__}: {error}. Pass an input that it "
            "accepts (a tensor, a tuple of arguments, or a dict of keywords)."
        ) from error


def run_once(model: nn.Module, examples: Iterable[Any], hook: Callable[[], list[Any]]) -> bool:
    """Run the model, in eval mode and without a trace, on the first example that it takes, with the hooks that ``hook`` sets."""
    for example in examples:
        hooks = hook()
        try:
            with undisturbed(model), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(model, example)
        except Exception:  # not an input that this model takes; try the next
            continue
        finally:
            for handle in hooks:
                handle.remove()
        return True
    return False


def tensors_in(value: Any) -> list[Tensor]:
    """Every floating-point tensor in a nested output, in order."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        value = list(value.values())
    return (
        [t for item in value for t in tensors_in(item)] if isinstance(value, list | tuple) else []
    )


def _could_be_logits(output: Any) -> list[Tensor]:
    """What a classifier returns: a tensor, ``.logits``, ``["logits"]`` (torchvision: ``["out"]``), or a tuple with it."""
    for candidate in (output, getattr(output, "logits", None)):
        if isinstance(candidate, Tensor):
            return [candidate]
    tensors = [tensor for tensor in tensors_in(output) if tensor.ndim]  # a loss has no axis
    if isinstance(output, Mapping):
        named = [output[key] for key in ("logits", "out") if isinstance(output.get(key), Tensor)]
        if named:
            return named[:1]
        if len(tensors) > 1:
            raise TstarError(
                f"A model that returns several values must call one of them 'logits', got {list(output)}; "
                "pass head='path.of.the.layer' to name the output layer (temper also takes a list of several)."
            )
    if not tensors:
        raise TstarError(
            f"The model must return logits, got {type(output).__name__}; pass head='path.of.the.layer'."
        )
    return tensors


@contextmanager
def in_mode(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """In eval (or training) mode; afterwards every module's own mode is as it was."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.train(training)
        yield
    finally:
        model.train()  # some modules (LeViT's attention) drop here what they cached in eval mode
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def undisturbed(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """In eval (or training) mode; afterwards every mode, buffer and random generator is as it was."""
    cuda = sorted(
        {t.device.index or 0 for t in (*model.parameters(), *model.buffers()) if t.is_cuda}
    )
    with ALONE, torch.random.fork_rng(devices=cuda):
        buffers = [
            (buffer, buffer.detach().clone()) for buffer in model.buffers() if not buffer.is_meta
        ]
        python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            with in_mode(model, training=training):
                yield
        finally:
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002
