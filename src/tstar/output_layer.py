"""Which layer of a classifier gives its logits, and how to run a copy of a model.

One run shows it: the logits' autograd graph is walked back to the layers that they come from. The
model itself never runs: a copy does, on torch's meta device, which holds shapes and no numbers, or,
if the model's ``forward`` looks at numbers, a real copy.

Belongs here: reading a model. Changing one belongs to ``surgery.py``.
"""

from __future__ import annotations

import copy
import functools
import math
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tstar.errors import TstarError, guarded, shown
from tstar.head import TemperedHead, check_affine, check_layer, is_output_layer, weight_of

WRAPPERS = (
    *("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"),
    *("OptimizedModule", "_FabricModule"),
)
# The autograd nodes that may stand between the output layer and the logits, by name or beginning.
_ENDS = {"softmax", "sigmoid"}
_SHAPES = {
    "view", "unsafeview", "reshapealias", "reshape", "unflatten", "squeeze", "unsqueeze", "permute",
    "transpose", "t", "mt", "clone", "alias", "tocopy",
}  # fmt: skip
_PASSES = _ENDS | _SHAPES | {
    "mul", "div", "expand", "asstrided", "slice", "select", "index", "indexselect", "gather",
    "split", "splitwithsizes", "unbind", "narrow", "copy", "copyslices", "stack", "cat", "repeat",
    "mean", "sum", "amax", "max", "min", "logsumexp", "relu", "leakyrelu", "hardtanh", "tanh",
    "logsoftmax", "nativedropout", "maskedfill", "where", "add", "sub", "rsub", "neg",
    "accumulategrad",
}  # fmt: skip
_PASSING = ("adaptive", "avgpool", "maxpool", "mkldnn", "upsample", "clamp")
_IMAGE_SIZES = (32, 64, 224, 96, 128, 299, 256, 384, 16, 28, 48, 8, 20, 24, 40, 50, 100, 160, 512)


@dataclass(frozen=True)
class Head:
    """A model's output layer: where it is, and the M and K of the formula."""

    path: str
    layer: nn.Module
    num_features: int
    num_classes: int
    # Whether a softmax or a sigmoid follows it, and whether each sample has many labels.
    ends: tuple[str, ...] = field(default=(), repr=False, compare=False)
    dense: bool = field(default=False, repr=False, compare=False)

    def __str__(self) -> str:
        name = f"{self.path!r}" if self.path else "the model itself"
        kind = type(self.layer).__name__
        return f"{name}: {kind}, M = {self.num_features}, K = {self.num_classes}"


@guarded("find_head() failed in your model")
def find_head(model: nn.Module, example_input: Any = None) -> Head:
    """The layer whose output becomes the logits.

    A copy of the model runs, without your hooks, on ``example_input`` or on standard inputs. The
    model stays as it is; what a forward pass draws at random, it draws on the process's generators.

    Args:
        model: any classifier.
        example_input: a tensor, a tuple (positional arguments), a mapping (keyword arguments), or
            the list [inputs, labels] that a DataLoader gives.

    >>> print(find_head(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))))
    '2': Linear, M = 32, K = 10
    """
    heads = _find_heads(ready(model), example_input)
    if len(heads) > 1:
        names = ", ".join(repr(head.path) for head in heads)
        several = [head.path for head in heads if head.num_classes > 1] or [heads[0].path]
        every = "'all'" if len(several) == len(heads) else several
        more = f", or head={every} for several" if len(several) > 1 else ""
        raise TstarError(
            f"Found {len(heads)} output layers ({names}); pass head={several[0]!r} to choose "
            f"one{more}."
        )
    return heads[0]


def tempered_heads(model: nn.Module) -> dict[str, TemperedHead]:
    """Every tempered head in a model, by path."""
    return {p: module for p, module in model.named_modules() if isinstance(module, TemperedHead)}


def working_heads(model: nn.Module) -> dict[str, TemperedHead]:
    """The tempered heads that run: PEFT keeps an idle copy of each layer that it trains."""
    return {p: h for p, h in tempered_heads(model).items() if not p.endswith("original_module")}


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside ``DistributedDataParallel``, ``DataParallel`` and ``torch.compile``."""
    if not isinstance(model, nn.Module):
        raise TstarError(f"The model must be a torch.nn.Module, got {type(model).__name__}.")
    while type(model).__name__ in WRAPPERS:
        inner: Any = model._orig_mod if hasattr(model, "_orig_mod") else model.module
        model = inner
    return model


def ready(model: nn.Module) -> nn.Module:
    """The model itself, unless it has no fixed layers yet, or no changeable ones any more."""
    model = unwrap(model)
    if any(map(is_lazy, [*model.parameters(), *model.buffers()])):
        raise TstarError("The model has lazy layers; run one batch through it first.")
    if isinstance(model, torch.jit.ScriptModule):
        raise TstarError("The model must be a plain module, got a scripted one: its code is fixed.")
    return model


def resolve_head(model: nn.Module, head: str | Head | None, example_input: Any = None) -> Head:
    """One head: the one named, or the one found."""
    if head is None:
        return find_head(model, example_input)
    model, path = ready(model), head.path if isinstance(head, Head) else head
    try:
        layer = model.get_submodule(path)
    except (AttributeError, TypeError):  # TypeError: no string
        layers = [name for name, module in model.named_modules() if is_output_layer(module)]
        raise TstarError(
            f"head must be the path of a layer of the model, got {shown(path)}; the last "
            f"candidates are {', '.join(map(repr, layers[-3:])) or 'none'}."
        ) from None
    if isinstance(layer, TemperedHead):  # the path that it had before
        path, layer = f"{path}.layer".lstrip("."), layer.layer
    check_layer(layer)
    if isinstance(head, Head) and head.layer is layer:
        return replace(head, path=path)
    origin = Origin() if tempered_heads(model) else _origin_at(model, path, example_input)
    return _record(model, path, origin)


def _origin_at(model: nn.Module, path: str, example_input: Any) -> Origin:
    """What follows a layer that was named; refused if it runs and the logits come from others."""
    try:
        candidates, marks = _trace_outputs(model, example_input)
    except Exception:  # no input is known: the name is taken as it is
        return Origin()
    others = [other for each in candidates for other in each.paths]
    unsure = path not in marks.values() or any(each.blocked for each in candidates)
    if others and path not in others and not unsure:
        raise TstarError(
            f"The logits must come from the layer that head= names, got {path!r}, but they come "
            f"from {', '.join(map(repr, dict.fromkeys(others)))}."
        )
    origin = next((each for each in candidates if path in each.paths), Origin())
    return origin if origin.paths == (path,) else replace(origin, ends=())  # another layer's


def resolve_heads(model: nn.Module, head: Any, example_input: Any) -> list[Head]:
    """All heads that ``head`` means: one, ``"all"``, or several paths."""
    if isinstance(head, str) and head == "all":
        return _find_heads(ready(model), example_input)
    several = isinstance(head, list | tuple) and len({*map(str, head)}) == len(head) > 0
    paths = head if several else [head]
    return [resolve_head(model, path, example_input) for path in paths]


def _record(model: nn.Module, path: str, origin: Origin) -> Head:
    parts, layer = path.split("."), model.get_submodule(path)
    for end in range(1, len(parts)):
        if hasattr(model.get_submodule(".".join(parts[:end])), "base_layer"):  # PEFT's name for W
            raise TstarError(
                f"The output layer must be plain, got one with an adapter ({path!r} is part of "
                "it). Leave it out of target_modules and train it whole (modules_to_save, or "
                "task_type='SEQ_CLS'), or merge the adapter."
            )
    K, M = weight_of(layer).shape[:2]
    logits = sum(len(weight_of(model.get_submodule(each))) for each in origin.paths)
    return Head(path, layer, M, K, origin.ends, dense=origin.size > logits > 0)


def check_head(model: nn.Module, head: Head) -> None:
    """Refuse a head that cannot be tempered: it must be plain, affine, trained and its own."""
    check_layer(head.layer)
    check_affine(head.layer, head.path)
    weight = weight_of(head.layer)
    if not weight.requires_grad:
        raise TstarError(
            f"The output layer must be trainable, got {head.path!r} with requires_grad=False. "
            "Unfreeze it, or do not temper."
        )
    own = {id(p) for p in head.layer.parameters()}
    for name, module in model.named_modules():
        held = {id(p) for p in module.parameters(recurse=False)}
        if module is not head.layer and own & held:
            raise TstarError(
                f"The output layer's parameters must be its own, but {head.path!r} shares one with "
                f"{name!r}: T would change both. Clone the parameter first."
            )


# --- finding ---
def _find_heads(model: nn.Module, example_input: Any) -> list[Head]:
    if next(model.parameters(), None) is None:
        raise TstarError("The model has no parameters.")
    tempered = working_heads(model)
    if tempered:
        return [_record(model, f"{path}.layer".lstrip("."), Origin()) for path in tempered]
    origin = _find_origin(model, example_input)
    every = [path for path, _ in model.named_modules(remove_duplicate=False)]
    return [_record(model, path, origin) for path in every if path in origin.paths]


@dataclass(frozen=True)
class Origin:
    """Where a tensor of a run comes from: layers, what else it depends on, softmax or sigmoid."""

    paths: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    size: int = 0  # numbers that the output has for each sample


def _trace_outputs(
    model: nn.Module, example_input: Any, training: bool = False
) -> tuple[list[Origin], dict[Any, str]]:
    """The origin of each output of a run that could be the logits, and the layers that ran."""
    marks: dict[Any, str] = {}

    def prepare(twin: nn.Module) -> None:
        marks.clear()
        for path, module in twin.named_modules():
            if is_output_layer(module):
                module.register_forward_hook(functools.partial(_mark, path, marks))

    with torch.enable_grad():
        output = run_copy(model, example_input, prepare, training=training)
    ends = tensors_in(output) if training else _could_be_logits(output)  # there may be a loss
    origins = [replace(_trace_back([e.grad_fn], marks), size=math.prod(e.shape[1:])) for e in ends]
    return origins, marks


def _find_origin(model: nn.Module, example_input: Any) -> Origin:
    """The layers that the logits of a run come from, if that is beyond doubt."""
    with runs_on("a standard input" if example_input is None else "example_input"):
        candidates, _ = _trace_outputs(model, example_input)
    leading = [each for each in candidates if each.paths] or candidates[:1]
    if len({each.paths for each in leading}) > 1:
        paths = list(dict.fromkeys(path for each in leading for path in each.paths))
        classes = [p for p in paths if len(weight_of(model.get_submodule(p))) > 1] or paths
        raise TstarError(
            "The model returns several tensors that could be the logits (they come from "
            f"{', '.join(map(repr, paths))}); pass head={classes[-1]!r} to name the output layer "
            "(temper also takes a list of several)."
        )
    origin = next((each for each in leading if not each.ends), leading[0])  # no probabilities
    if origin.ends:  # those that eval mode alone has do not count
        with suppress(Exception):
            trained = {end for s in _trace_outputs(model, example_input, True)[0] for end in s.ends}
            origin = replace(origin, ends=tuple(end for end in origin.ends if end in trained))
    if origin.blocked or not origin.paths:
        raise TstarError(
            "The logits must come from a linear layer or a 1×1 convolution, but they come from "
            f"{', '.join([*map(repr, origin.paths), *origin.blocked]) or 'no layer'}; pass "
            "head='path.of.the.layer' if there is one."
        )
    return origin


def _mark(
    path: str, marks: dict[Any, str], module: nn.Module, inputs: Any, output: Any
) -> Tensor | None:
    """Cut the graph at a layer's output, so that the walk ends there."""
    if not isinstance(output, Tensor):
        return None
    marked = output.detach().requires_grad_().clone()  # a clone, which may be changed in place
    marks[marked.grad_fn] = path
    return marked


def _trace_back(nodes: list[Any], marks: dict[Any, str], with_ends: bool = True) -> Origin:
    """From autograd nodes back to the marked layers, and ``with_ends`` what the logits pass."""
    visited: set[Any] = set()
    paths: dict[str, None] = {}  # in order, each once, as the next two
    blocked: dict[str, None] = {}
    ends: dict[str, None] = {}
    while nodes:
        node = nodes.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        name = type(node).__name__.split("Backward")[0]
        if node in marks:
            paths[marks[node]] = None
        elif name.lower() in _PASSES or name.lower().startswith(_PASSING):
            parents = [parent for parent, _ in node.next_functions]
            # a softmax may also weigh several heads (EfficientViM)
            ending = with_ends and name.lower() in _ENDS
            if ending and _trace_back([*parents], marks, with_ends=False).paths:
                ends[name.lower()] = None
            nodes.extend(parents)
        else:
            blocked[name] = None
    return Origin(tuple(paths), tuple(blocked), tuple(ends))


def _could_be_logits(output: Any) -> list[Tensor]:
    """What a classifier returns: a tensor, ``.logits``, ``["logits"]``, ``["out"]``, or a tuple."""
    named = [output, getattr(output, "logits", None)]
    if isinstance(output, Mapping):
        named += [output.get("logits"), output.get("out")]
    tensors = [tensor for tensor in tensors_in(output) if tensor.ndim]  # a loss has no axis
    if not tensors:
        raise TstarError(
            f"The model must return logits, got {type(output).__name__}; pass "
            "head='path.of.the.layer'."
        )
    return next(([one] for one in named if isinstance(one, Tensor)), tensors)


def tensors_in(value: Any) -> list[Tensor]:
    """Every floating-point tensor in a nested output, in order."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    items = list(value.values()) if isinstance(value, Mapping) else value
    nested = items if isinstance(items, list | tuple) else ()
    return [tensor for item in nested for tensor in tensors_in(item)]


def has_preceding_norm(model: nn.Module, head: Head, example_input: Any = None) -> bool:
    """Whether the head's input is the output of a batch norm of the model's own, in eval mode."""
    nodes: list[Any] = []

    def prepare(twin: nn.Module) -> None:
        nodes.clear()
        for parameter in twin.parameters():  # a frozen norm leaves a node, too
            if parameter.is_floating_point():
                parameter.requires_grad_()
        layer = twin.get_submodule(head.path)
        tempered = (each for each in tempered_heads(twin).values() if each.layer is layer)
        first = next(tempered, layer)  # the norm that temper inserted is not the model's own
        first.register_forward_pre_hook(lambda _, inputs: nodes.append(inputs[0].grad_fn))

    try:
        with torch.enable_grad():
            run_copy(model, example_input, prepare)
    except Exception:  # no input that it takes
        return False
    return bool(nodes) and all(map(_is_normed, nodes))


def _is_normed(node: Any) -> bool:
    while node is not None and type(node).__name__.split("Backward")[0].lower() in _SHAPES:
        node = node.next_functions[0][0]
    return "BatchNorm" in type(node).__name__


# --- running ---
def scratch_copy(model: nn.Module, *, meta: bool = False, hooks: bool = True) -> nn.Module:
    """A copy to run in the model's place; on the meta device it has shapes and no numbers."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        if not hooks:  # a user's hook expects the model itself; a backward one hides the logits
            every = (own for name, own in vars(module).items() if name.endswith("_hooks"))
            memo |= {id(own): OrderedDict() for own in every if isinstance(own, OrderedDict)}
        held = (*module._parameters.values(), *module._buffers.values(), *vars(module).values())
        for tensor in held:
            if not isinstance(tensor, Tensor) or not (meta or tensor.grad_fn is not None):
                continue
            new = tensor.detach().to("meta") if meta else tensor.detach().clone()
            if isinstance(tensor, nn.Parameter):
                new = nn.Parameter(new, tensor.requires_grad)
            memo[id(tensor)] = new
    try:
        return copy.deepcopy(model, memo)
    except Exception as error:
        raise TstarError(
            f"The model cannot be copied (copy.deepcopy raised {type(error).__name__}: {error}); "
            "pass head='path.of.the.layer' and inplace=True."
        ) from error


def run_copy(
    model: nn.Module,
    example_input: Any,
    prepare: Callable[[nn.Module], Any],
    *,
    training: bool = False,
) -> Any:
    """The output of a copy of the model on the example, or on the first standard input that fits.

    ``prepare`` sets hooks on each copy before it runs. A copy on the meta device is tried first,
    then a real one, unless one has failed in the same line. If no example fits, the last error is
    raised.
    """
    failure: Exception | None = None
    known = standard_inputs(model) if example_input is None else [inputs_of(example_input)]
    tried = list(known)
    like = next(model.parameters(), None)
    failed: dict[bool, dict[int, Any]] = {True: {}, False: {}}  # on meta or not: example → line
    for on_meta in (True, False):
        for i, example in enumerate(tried):
            if not on_meta and failed[True][i] in failed[False].values():
                continue
            twin = scratch_copy(model, meta=on_meta, hooks=False)
            prepare(twin)
            device = "meta" if on_meta else None if like is None else like.device
            try:
                return call(twin.train(training), example, device)
            except Exception as error:  # not an input that it takes, or numbers are looked at
                failure = error
                lines = traceback.extract_tb(error.__traceback__)[::-1]
                failed[on_meta][i] = next((line for line in lines if line.name == "forward"), None)
    raise failure or TstarError("No input is known that the model could run on.")


def accepted(model: nn.Module, example: Any) -> Any:
    """The example if a copy of the model runs on it, else ``None``."""
    if example is None:
        return None
    try:
        with torch.no_grad():
            run_copy(model, example, lambda twin: None)
    except Exception:  # data may be kept in another form than the model takes
        return None
    return example


@contextmanager
def in_mode(model: nn.Module) -> Iterator[None]:
    """In eval mode; afterwards every module's own mode is as it was."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        model.train()  # some modules (LeViT's attention) drop here what they cached in eval mode
        for module, mode in modes.items():
            module.training = mode


def inputs_of(batch: Any) -> Any:
    """What a model takes of a batch: a tuple, a mapping, or the first of [inputs, labels]."""
    if isinstance(batch, list) and batch:
        return (batch[0],) if isinstance(batch[0], list) else batch[0]  # the same when asked again
    return dict(batch) if isinstance(batch, Mapping) else batch


def moved(example: Any, device: Any) -> Any:
    """An example with its tensors on a device; ``None`` leaves them."""
    if isinstance(example, Mapping):
        return {key: moved(value, device) for key, value in example.items()}
    if isinstance(example, tuple):
        return tuple(moved(value, device) for value in example)
    return example.to(device) if isinstance(example, Tensor) and device is not None else example


def call(model: nn.Module, example: Any, device: Any = None) -> Any:
    """``model`` on an example: a mapping by keyword, a tuple by position, else one argument."""
    example = moved(example, device)
    if isinstance(example, Mapping):
        return model(**example)
    return model(*example) if isinstance(example, tuple) else model(example)


def runs_on(what: str) -> AbstractContextManager[None]:
    """Whatever a model raises on an input that was given for it becomes one error."""
    return guarded(
        f"The model must run on {what}; pass example_input=… that it accepts (a tensor, a tuple of "
        "arguments, or a dict of keywords), or head='path.of.the.layer'. It raised"
    )


# --- inputs that common models accept ---
def standard_inputs(model: nn.Module) -> Iterator[Any]:
    """Likely inputs of ``model``: what its library declares, then what its first layer takes."""
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    if like is None:
        return
    yield from _transformers(model, like)
    declared = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None)
    if isinstance(declared, Mapping) and declared.get("input_size"):  # timm
        yield _noise((2, *declared["input_size"]), like)
    fitting = (list(_for_layer(layer, like)) for layer in model.modules())
    yield from next(filter(None, fitting), [])


def _transformers(model: nn.Module, like: Tensor) -> Iterator[dict[str, Tensor]]:
    name, config = getattr(model, "main_input_name", None), getattr(model, "config", None)
    if not isinstance(name, str) or config is None:
        return

    def size_of(key: str, default: int) -> Any:
        return getattr(config, key, None) or default

    for batch in (2, 1):  # decoders without a padding token take one sequence only
        if name == "input_ids":
            ids = torch.randint(3, 10, (batch, 8), generator=torch.Generator().manual_seed(0))
            if isinstance(end := getattr(config, "eos_token_id", None), int):
                ids[:, -1] = end  # BART and T5 classify at the last end-of-sequence token
            yield {name: ids}
            yield {name: ids, "bbox": ids.new_zeros(*ids.shape, 4)}  # readers of documents
        elif name == "pixel_values":
            vision: Any = getattr(config, "vision_config", None)
            if hasattr(vision, "num_patches"):  # SigLIP 2: 4×4 patches, each flattened
                width = vision.num_channels * vision.patch_size**2
                known = {"pixel_attention_mask": torch.ones(batch, 16, dtype=torch.long)}
                known["spatial_shapes"] = torch.full((batch, 2), 4)
                yield {name: _noise((batch, 16, width), like), **known}
            size = size_of("image_size", 224)
            height, width = size if isinstance(size, list | tuple) else (size, size)
            yield {name: _noise((batch, size_of("num_channels", 3), height, width), like)}
        else:  # audio: raw waveform, (frames, mel bins), or Whisper's (mel bins, frames)
            yield {name: _noise((batch, 16000), like)}
            mels = size_of("num_mel_bins", size_of("feature_projection_input_dim", 128))
            yield {name: _noise((batch, size_of("max_length", 1024), mels), like)}
            yield {name: _noise((batch, mels, 2 * size_of("max_source_positions", 1500)), like)}


def _for_layer(layer: nn.Module, like: Tensor) -> Iterator[Tensor]:
    shapes: list[tuple[int, ...]] = []
    if isinstance(layer, nn.Conv2d):
        shapes = [(layer.in_channels, size, size) for size in _IMAGE_SIZES]
    elif isinstance(layer, nn.Conv1d):
        shapes = [(layer.in_channels, length) for length in (128, 1024, 16000)]
    elif isinstance(layer, nn.Conv3d):
        shapes = [(layer.in_channels, 16, 112, 112)]
    elif isinstance(layer, nn.Linear):
        shapes = [(layer.in_features,), (8, layer.in_features)]
    elif isinstance(layer, nn.RNNBase):
        shapes = [(16, layer.input_size)]
    elif isinstance(layer, nn.Embedding):
        yield torch.zeros((2, 8), dtype=torch.long)
    for shape in shapes:
        yield _noise((2, *shape), like)


def _noise(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(like.dtype)
