"""Which batch norm, if any, already stands just before the output layer."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from tstar.surgery.example_inputs import standard_inputs
from tstar.surgery.finding import Head
from tstar.surgery.probing import inputs_of, run_once

_IDLE = (nn.Identity, nn.Dropout, nn.Flatten)  # in eval mode


def preceding_norm(
    model: nn.Module, head: Head, example_input: Any = None
) -> tuple[str, nn.Module] | None:
    """The batch norm whose output, unchanged but for its shape (and dropout), is the head's input: its path and itself.

    Same memory, same version: a flattened, squeezed or (in eval mode) dropped-out output, and none that an activation
    has changed in place.
    """
    norms: dict[nn.Module, str] = {
        m: p for p, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)
    }
    if not norms:
        return None
    normed: list[tuple[nn.Module, Tensor, int]] = []  # kept alive, so that no memory is used twice
    at_head: list[nn.Module | None] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        normed.append((module, output, output._version))

    def compare(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        h = inputs[0]
        same = (
            norm
            for norm, o, version in normed
            if (o.data_ptr(), o.numel(), version) == (h.data_ptr(), h.numel(), h._version)
        )
        at_head.append(next(same, None))

    def hook() -> list[Any]:
        normed.clear()
        at_head.clear()
        return [
            *(norm.register_forward_hook(keep) for norm in norms),
            head.layer.register_forward_pre_hook(compare),
        ]

    examples = [inputs_of(example_input)] if example_input is not None else standard_inputs(model)
    if not run_once(model, examples, hook) or not at_head or not all(at_head):
        return None
    found = at_head[0]
    return (norms[found], found) if found is not None else None


def defined_before(model: nn.Module, layer: nn.Module) -> bool:
    """Whether a batch norm is defined just before ``layer``, so that a run is worth its time."""
    last: nn.Module | None = None
    for module in model.modules():
        if module is layer:
            break
        if next(module.children(), None) is None and not isinstance(module, _IDLE):
            last = module
    return isinstance(last, nn.modules.batchnorm._BatchNorm)
