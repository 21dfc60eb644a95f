"""Find the output layer in the symbolically traced graph: no input needed, nothing computed."""

from __future__ import annotations

import warnings
from typing import Any

from torch import fx, nn

from tstar.surgery.layers import is_output_layer
from tstar.surgery.probing import Seen, undisturbed

# What may stand between the output layer and the logits, by module type and by function or method name.
_MODULES = (
    nn.Identity, nn.Flatten, nn.Unflatten, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout,
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d, nn.ReLU, nn.ReLU6, nn.Sigmoid, nn.Tanh,
    nn.Softmax, nn.LogSoftmax,
)  # fmt: skip
_FUNCTIONS = {
    "flatten", "view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "contiguous",
    "mean", "sum", "amax", "max", "getitem", "getattr", "select", "narrow", "stack", "cat", "add",
    "sub", "mul", "div", "truediv", "neg", "iadd", "imul", "itruediv", "relu", "sigmoid", "tanh",
    "softmax", "log_softmax", "dropout", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "float", "to", "clone", "interpolate",
}  # fmt: skip


def trace(model: nn.Module) -> Seen | None:
    """The layers that the logits come from, or ``None`` where the model cannot be traced."""
    try:
        with warnings.catch_warnings(), undisturbed(model):
            warnings.simplefilter("ignore")
            graph = fx.Tracer().trace(model)
    except (
        Exception
    ):  # whatever the user's forward raises on symbolic values: it only means "not traceable"
        return None
    output = next(node for node in graph.nodes if node.op == "output")
    ends = _logits_nodes(output.args[0])
    return None if ends is None else _walk(model, ends)


def _logits_nodes(value: Any) -> list[fx.Node] | None:
    if isinstance(value, dict):
        value = value.get("logits", next(iter(value.values())) if len(value) == 1 else None)
    if isinstance(
        value, list | tuple
    ):  # several values: only a run tells which of them could be logits
        value = value[0] if len(value) == 1 else None
    return [value] if isinstance(value, fx.Node) else None


def _walk(model: nn.Module, ends: list[fx.Node]) -> Seen:
    found: dict[str, None] = {}
    blocked: dict[str, None] = {}
    passed: dict[str, None] = {}
    seen: set[fx.Node] = set()
    while ends:
        node = ends.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op == "get_attr":
            continue
        if node.op == "call_module":
            module = model.get_submodule(str(node.target))
            if is_output_layer(module):
                found[str(node.target)] = None
                continue
            passes = isinstance(module, _MODULES)
            name = type(module).__name__
        else:
            name = _name(node)
            passes = node.op in ("call_function", "call_method") and name in _FUNCTIONS
        if passes:
            passed[name.lower()] = None
            ends.extend(reversed(node.all_input_nodes))
        else:
            blocked[name] = None
    return Seen(tuple(found), tuple(blocked), (), tuple(passed))


def _name(node: fx.Node) -> str:
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    return "the input" if node.op == "placeholder" else name.strip("_")


__all__ = ["trace"]
