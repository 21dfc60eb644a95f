"""The statistics of the norm before the head: quick enough for short runs, and measured anew on request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from tstar.errors import TstarError, shown
from tstar.numbers import whole
from tstar.surgery.finding import unwrap, working_heads
from tstar.surgery.leaving import expect_left
from tstar.surgery.probing import call, in_mode, inputs_of, runs_on

_MEMORY = 10  # batches that the running statistics should have forgotten most of by the end, whatever the run's length


def shorten_memory(norm: nn.Module | None, steps: int | None) -> None:
    """Raise a batch norm's momentum in runs so short that statistics of the beginning would still count at the end."""
    if steps is None or not isinstance(norm, nn.modules.batchnorm._BatchNorm):
        return
    assert norm.momentum is not None
    norm.momentum = max(norm.momentum, min(0.5, _MEMORY / steps))


def recalibrate(
    model: nn.Module, loader: Iterable[Any], *, batches: int | None = None
) -> nn.Module:
    """Measure the statistics of the norm before the head anew, as the mean over batches at the present weights.

    The running statistics lag behind the weights, which shows after short runs and with a moving average of
    the weights. Call it after training, before :func:`tstar.fold`. Everything but these statistics is as before;
    the rest of the model runs in eval mode.

    Args:
        model: a tempered model; changed in place and returned. One that was left as it is, on advice, stays so.
        loader: batches as a DataLoader gives them, [inputs, labels], or what the model takes: tensors, tuples of
            arguments, mappings of keywords. Use the training data.
        batches: how many of them; all by default.
    """
    inner = unwrap(model)
    heads = list(working_heads(inner).values())
    if not isinstance(loader, Iterable):
        raise TstarError(f"loader must give batches, got {shown(loader)}.")
    batches = None if batches is None else whole("batches", batches, least=1)
    if not heads:
        expect_left(inner)
        return model
    norms = [h.norm for h in heads if isinstance(h.norm, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        raise TstarError("The model has no batch norm before its output layer to recalibrate.")
    before = [(norm, norm.momentum) for norm in norms]
    saved = [(b, b.detach().clone()) for norm in norms for b in norm.buffers()]
    learned = False
    try:
        with in_mode(inner), torch.no_grad(), runs_on("every batch of loader"):
            for norm in norms:
                norm.train()
                norm.reset_running_stats()
                norm.momentum = None  # the mean over all batches
            for seen, batch in enumerate(loader, start=1):
                call(inner, _on_device(inputs_of(batch), heads[0].temperature.device))
                if seen == batches:
                    break
        _check(norms)
        learned = True
    finally:
        for norm, momentum in before:
            norm.momentum = momentum
        if not learned:
            with torch.no_grad():
                for buffer, value in saved:
                    buffer.copy_(value)
    return model


def _check(norms: list[nn.modules.batchnorm._BatchNorm]) -> None:
    """Refuse statistics of nothing, and those of NaN."""
    if not all(int(norm.num_batches_tracked or 0) for norm in norms):
        raise TstarError("recalibrate needs at least one batch of two samples or more.")
    if not all(bool(b.isfinite().all()) for norm in norms for b in norm.buffers()):
        raise TstarError(
            "The features of every batch must be finite, but recalibrate got NaN or infinity; check your data."
        )


def _on_device(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, dict):
        return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(_on_device(one, device) for one in inputs)
    return inputs.to(device) if isinstance(inputs, torch.Tensor) else inputs
