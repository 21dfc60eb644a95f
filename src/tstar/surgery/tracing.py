"""Find the output layer in the symbolically traced graph: no input needed, nothing computed."""

from __future__ import annotations

import threading
import warnings
from functools import partial
from typing import Any

from torch import fx, nn

from tstar.surgery.layers import is_output_layer
from tstar.surgery.probing import Look, Seen, undisturbed, walk

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

_SAME = {"truediv": "div", "itruediv": "div", "imul": "mul"}  # as the autograd graph calls them


class _Tracer(fx.Tracer):
    """Traces in its own thread alone: fx changes ``nn.Module`` for the whole process while it works."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != self._thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        if threading.get_ident() != self._thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)


def trace(model: nn.Module, *, training: bool = False, only: str | None = None) -> Seen | None:
    """The layers that the logits come from, or ``None`` where the model cannot be traced; ``only`` as in a probe."""
    try:
        with undisturbed(model, training=training), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = _Tracer().trace(model)
    except Exception:  # whatever the user's forward raises on symbolic values
        return None
    output = next(node for node in graph.nodes if node.op == "output")
    logits = _logits(output.args[0])
    if not isinstance(logits, fx.Node):
        return None
    return walk([logits], partial(_look, model), only=only)


def _logits(value: Any) -> Any:
    """The node of the logits; of several values only a run tells which of them could be logits."""
    if isinstance(value, dict):
        return value.get("logits", next(iter(value.values())) if len(value) == 1 else None)
    if isinstance(value, list | tuple):
        return value[0] if len(value) == 1 else None
    return value


def _look(model: nn.Module, node: fx.Node) -> Look:
    if node.op == "get_attr":
        return "passed", "constant", []
    name = _name(node)
    passes = node.op.startswith("call_") and name in _FUNCTIONS
    if node.op == "call_module":
        module = model.get_submodule(str(node.target))
        if is_output_layer(module):
            return "found", str(node.target), []
        name, passes = type(module).__name__, isinstance(module, _MODULES)
    if passes:
        return "passed", _SAME.get(name, name.lower()), [*reversed(node.all_input_nodes)]
    return "blocked", name, []


def _name(node: fx.Node) -> str:
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    return "the input" if node.op == "placeholder" else name.strip("_")
