"""Find a model's output layer: :func:`find_head` describes it in a frozen record, and changes nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tstar.errors import TstarError, shown
from tstar.surgery.declared import declared_heads
from tstar.surgery.example_inputs import cheap_inputs, standard_inputs
from tstar.surgery.head import TemperedHead
from tstar.surgery.layers import check_layer, is_output_layer, weight_of
from tstar.surgery.probing import ALONE, ENDS, SCALES, Seen, inputs_of, probe, runs_on
from tstar.surgery.tracing import trace

WRAPPERS = (
    "DistributedDataParallel",
    "DataParallel",
    "FullyShardedDataParallel",
    "OptimizedModule",
    "_FabricModule",
)


@dataclass(frozen=True)
class Head:
    """A model's output layer: where it is, and the M and K of the formula."""

    path: str
    layer: nn.Module
    num_features: int
    num_classes: int
    # What is done to its output in training.
    passed: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        name = f"{self.path!r}" if self.path else "the model itself"
        return (
            f"{name}: {type(self.layer).__name__}, M = {self.num_features}, K = {self.num_classes}"
        )


def find_head(model: nn.Module, example_input: Any = None) -> Head:
    """The layer whose output becomes the logits.

    Asked in turn: the library's own declaration (timm), the traced graph, and a run on ``example_input`` or
    on standard inputs. Nothing about the model changes: mode, buffers and random generators are as before.

    Args:
        model: any classifier.
        example_input: a tensor, a tuple (positional arguments), a mapping (keyword arguments), or the list
            [inputs, labels] that a DataLoader gives.

    >>> find_head(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    Head(path='3', layer=Linear(in_features=32, out_features=10, bias=True), num_features=32, num_classes=10)
    """
    heads = _find_heads(_initialized(model), example_input)
    if len(heads) > 1:
        names = ", ".join(repr(head.path) for head in heads)
        raise TstarError(
            f"Found {len(heads)} output layers ({names}); pass head={heads[0].path!r} to choose one, or "
            "head='all' for all of them."
        )
    return heads[0]


def tempered_heads(model: nn.Module) -> dict[str, TemperedHead]:
    """Every tempered head in a model, by path."""
    return {
        path: module for path, module in model.named_modules() if isinstance(module, TemperedHead)
    }


def working_heads(model: nn.Module) -> dict[str, TemperedHead]:
    """The tempered heads that run: PEFT keeps an idle copy of each layer that it trains."""
    return {p: h for p, h in tempered_heads(model).items() if not p.endswith("original_module")}


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside ``DistributedDataParallel``, ``DataParallel`` and ``torch.compile``."""
    if not isinstance(model, nn.Module):
        raise TstarError(f"The model must be a torch.nn.Module, got {type(model).__name__}.")
    while type(model).__name__ in WRAPPERS:
        model = model._orig_mod if hasattr(model, "_orig_mod") else model.module  # type: ignore[assignment]
    return model


def refuse_lazy(model: nn.Module) -> None:
    """Layers whose width the first batch sets: a run on any other input would set it for good."""
    if any(map(is_lazy, [*model.parameters(), *model.buffers()])):
        raise TstarError(
            "The model has lazy layers that are not initialized; run one batch through it first."
        )


def _initialized(model: nn.Module) -> nn.Module:
    model = unwrap(model)
    refuse_lazy(model)
    return model


def resolve_head(model: nn.Module, head: str | Head | None, example_input: Any = None) -> Head:
    """One head: the one named, or the one found."""
    if head is None:
        return find_head(model, example_input)
    if isinstance(head, Head):
        return _named(_initialized(model), head.path)
    return _looked_at(_initialized(model), head, example_input)


def resolve_heads(model: nn.Module, head: Any, example_input: Any) -> list[Head]:
    if head is None:
        return [find_head(model, example_input)]
    if head == "all":
        return _find_heads(model, example_input, every=True)
    if isinstance(head, str | Head):
        return [resolve_head(model, head, example_input)]
    paths = list(head) if isinstance(head, Iterable) and not isinstance(head, bytes) else []
    if not paths or len({str(path) for path in paths}) < len(paths):
        raise TstarError(
            f"head must be the path of a layer, its record, 'all', or several paths that differ, got {shown(head)}."
        )
    return [_looked_at(model, path, example_input) for path in paths]


def _named(model: nn.Module, path: str) -> Head:
    try:
        layer = model.get_submodule(path)
    except (AttributeError, TypeError):  # TypeError: no string
        layers = [name for name, module in model.named_modules() if is_output_layer(module)]
        raise TstarError(
            f"head must be the path of a layer of the model, got {path!r}; the last candidates are "
            f"{', '.join(map(repr, layers[-3:])) or 'none'}."
        ) from None
    check_layer(layer)
    return _record(path, layer)


def _looked_at(model: nn.Module, path: str, example_input: Any) -> Head:
    """The layer that was named, with what is done to its output in training where a trace or a run shows it."""
    head = _named(model, path)
    seen = trace(model, training=True, only=path)
    if seen is None or path not in seen.paths:
        seen = _in_training(model, example_input, only=path)
    return head if seen is None else replace(head, passed=seen.passed)


def _record(path: str, layer: nn.Module, passed: tuple[str, ...] = ()) -> Head:
    weight = weight_of(layer)
    return Head(path, layer, weight.shape[1], weight.shape[0], passed)


def _find_heads(model: nn.Module, example_input: Any, *, every: bool = False) -> list[Head]:
    if next(model.parameters(), None) is None:
        raise TstarError("The model has no parameters.")
    tempered = tempered_heads(model)
    if tempered:
        return [_record(f"{path}.layer".lstrip("."), head.layer) for path, head in tempered.items()]
    if example_input is not None:
        example_input = inputs_of(example_input)
        _check_device(model, example_input)
    seen = _look(model, example_input)
    paths = list(seen.paths)
    if every:
        # the layers that lead to any output in training mode, such as auxiliary classifiers
        trained = _in_training(model, example_input)
        paths += [p for p in (trained.paths if trained else ()) if p not in paths]
    for path in paths:
        _refuse_adapted(model, path)
    passed = _passed_in_training(model, example_input, seen)
    return [_record(path, model.get_submodule(path), passed) for path in paths]


def _look(model: nn.Module, example_input: Any) -> Seen:
    """Ask the declaration, the graph, the example, the standard inputs; the first clear answer counts."""
    if example_input is not None:
        with runs_on("example_input"):
            return _clear(probe(model, example_input))
    declared = declared_heads(model)
    if declared:
        return Seen(declared, (), ())
    traced = trace(model)
    if traced is not None and traced.paths and not traced.blocked:
        return traced
    for example in standard_inputs(model):
        try:
            with ALONE, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen = probe(model, example)
        except TstarError:
            raise
        except Exception:  # not an input that this model takes; try the next
            continue
        return _clear(seen)
    if traced is not None:
        return _clear(traced)
    raise TstarError(
        "The output layer could not be found without an input; pass example_input=… (a batch that the model "
        "accepts), or head='path.of.the.layer'."
    )


def _clear(seen: Seen) -> Seen:
    """``seen`` if it names the output layer beyond doubt, else the reason why not."""
    way_out = "pass head='path.of.the.layer' if there is one."
    if seen.not_affine and not seen.paths:
        raise TstarError(
            f"The output layer must compute W·h + b, but {seen.not_affine[-1]!r} computes something else from "
            "its weight (a cosine or normalized head, perhaps), into which a norm cannot fold."
        )
    if not seen.paths:
        reason = (
            f"the logits come from {', '.join(seen.blocked)}"
            if seen.blocked
            else "no layer leads to them"
        )
        raise TstarError(
            f"The model must end in a linear layer or a 1×1 convolution, but {reason}; {way_out}"
        )
    if seen.blocked:
        raise TstarError(
            f"The logits must come from one output layer, but besides {', '.join(map(repr, seen.paths))} they "
            f"depend on {', '.join(seen.blocked)}; {way_out}"
        )
    return seen


def _in_training(model: nn.Module, example_input: Any, only: str | None = None) -> Seen | None:
    """What a run in training mode shows, or ``None`` where none succeeds."""
    inputs = standard_inputs if only is None else cheap_inputs
    examples = [example_input] if example_input is not None else inputs(model)
    for example in examples:
        try:
            with ALONE, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return probe(model, example, training=True, only=only)
        except Exception:
            continue
    return None


def _passed_in_training(model: nn.Module, example_input: Any, seen: Seen) -> tuple[str, ...]:
    """What is done to the output, without a softmax, sigmoid or scale that the model has in eval mode alone."""
    if not (ENDS | SCALES) & {*seen.passed}:
        return seen.passed
    trained = trace(model, training=True)
    if trained is None or not trained.paths or trained.blocked:
        trained = _in_training(model, example_input)
    if trained is None or not trained.paths:
        return seen.passed
    alone = (ENDS | SCALES) - {*trained.passed}
    return tuple(name for name in seen.passed if name not in alone)


def _refuse_adapted(model: nn.Module, path: str) -> None:
    parts = path.split(".")
    for end in range(1, len(parts)):
        if hasattr(model.get_submodule(".".join(parts[:end])), "base_layer"):  # PEFT's name for W
            raise TstarError(
                f"The output layer must be plain, got one with an adapter ({path!r} is part of it). Leave it out of "
                "target_modules and train it whole (modules_to_save, or task_type='SEQ_CLS'), or merge the adapter."
            )


def check_head(model: nn.Module, head: Head) -> None:
    check_layer(head.layer)
    _refuse_adapted(model, head.path)
    weight = weight_of(head.layer)
    if not weight.requires_grad:
        raise TstarError(
            f"The output layer must be trainable, got {head.path!r} with requires_grad=False: a training "
            "temperature has no effect on frozen weights. Unfreeze it, or do not temper."
        )
    sharers = [
        name
        for name, module in model.named_modules()
        if module is not head.layer and any(p is weight for p in module.parameters(recurse=False))
    ]
    if sharers:
        raise TstarError(
            f"The output layer's weight must be its own, but {head.path!r} shares it with {sharers[0]!r} "
            "(tied weights): folding would change both. Untie them first (clone the parameter)."
        )


def _check_device(model: nn.Module, example_input: Any) -> None:
    devices = {p.device for p in model.parameters()}
    is_mapping = isinstance(example_input, Mapping)
    values = list(example_input.values()) if is_mapping else example_input
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, Tensor) and value.device not in devices:
            raise TstarError(
                f"example_input must be on the model's device ({', '.join(sorted(map(str, devices)))}), got "
                f"{value.device}; move one of them with .to()."
            )
