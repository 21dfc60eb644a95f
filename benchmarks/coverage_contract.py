"""What a classifier must go through to count as covered: found, tempered, trained a step, folded, compared.

Nothing here trusts the code under test: the head is checked by what it does to the logits, the classes by the
number that was asked for, the fold by loading its state dict into the untouched model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import tstar
from tstar.output_layer import resolve_head, tempered_heads

CLASSES = 13  # no layer has this width by chance
TEMPERATURE = 7.5  # the advice for a narrow model can be 1, which divides nothing
TOLERANCE = 1e-4  # of the largest logit, in float32


class Broken(Exception):
    """The contract does not hold; the message says which part."""


def check(
    model: nn.Module, example: Any, *, declared_features: int | None = None, hint: Any = None
) -> dict[str, Any]:
    """Take ``model`` through the whole use of tstar on ``example``; what was seen, or :class:`Broken`.

    ``hint`` is the ``example_input`` that :func:`tstar.find_head` is given: none, for a head found without help.
    """
    on_meta = any(parameter.is_meta for parameter in model.parameters())
    keys = list(model.state_dict())
    heads, argument = find(model, hint)
    seen: dict[str, Any] = {
        "head": " ".join(head.path for head in heads),
        "kind": type(heads[0].layer).__name__,
        "M": heads[0].num_features,
        "K": heads[0].num_classes,
        "argument": argument,
    }
    expect(all(h.num_classes == CLASSES for h in heads), f"K = {seen['K']}, asked for {CLASSES}")
    widths = {head.num_features for head in heads}
    if (
        declared_features is not None and len(widths) == 1
    ):  # one number cannot declare several widths
        expect(
            widths == {declared_features},
            f"M = {seen['M']}, the library declares {declared_features}",
        )
    if not on_meta:
        expect(decides(model, heads, example), "the logits do not follow the layer that was found")

    tempered = tstar.temper(model, TEMPERATURE, head=[head.path for head in heads])
    train_step(tempered, example, on_meta)
    expected = logits(tempered.eval(), example)
    bare = any(head.layer.bias is None for head in heads)
    folded = tstar.fold(tempered, allow_bias=bare, inplace=True)
    added = sorted(set(folded.state_dict()) - set(keys))
    missing = sorted(set(keys) - set(folded.state_dict()))
    allowed = [f"{head.path}.bias" for head in heads if head.layer.bias is None]
    expect(not missing and added == sorted(allowed), f"keys added {added}, missing {missing}")
    seen["bias_added"] = len(added)
    if on_meta:
        return seen
    got = logits(folded, example)
    seen["difference"] = f"{distance(expected, got):.1e}"
    expect(distance(expected, got) < TOLERANCE, f"folded logits differ by {seen['difference']}")
    if not bare:
        model.load_state_dict(folded.state_dict())
        plain = logits(model.eval(), example)
        expect(distance(expected, plain) < TOLERANCE, "the plain architecture gives other logits")
    return seen


def find(model: nn.Module, hint: Any = None) -> tuple[list[Any], str]:
    """The head found without help. A model with several says so, and ``head="all"`` takes them."""
    try:
        return [tstar.find_head(model, hint)], ""
    except tstar.TstarError as error:
        if "head='all'" not in str(error):
            raise
    tempered = tstar.temper(model, 1.0, head="all", example_input=hint)
    return [resolve_head(model, path) for path in tempered_heads(tempered)], "head='all'"


def decides(model: nn.Module, heads: list[Any], example: Any) -> bool:
    """Whether the logits are what the found layers give: with W = 0 and b = c they must be c (times a constant)."""
    constant = torch.linspace(1.0, 2.0, CLASSES)
    parameters = [parameter for head in heads for parameter in head.layer.parameters()]
    saved = [parameter.detach().clone() for parameter in parameters]
    try:
        with torch.no_grad():
            for head in heads:
                head.layer.weight.zero_()
                if head.layer.bias is not None:
                    head.layer.bias.copy_(constant)
        out = logits(model.eval(), example).float()
        if heads[0].layer.bias is None:
            return bool(torch.allclose(out, torch.zeros(CLASSES).expand_as(out), atol=1e-5))
        share = out / constant  # one, or the sum of the weights with which several heads are added
        return bool(share.min() > 0 and torch.allclose(share, share.flatten()[:1], rtol=1e-4))
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, saved, strict=True):
                parameter.copy_(value)


def train_step(model: nn.Module, example: Any, on_meta: bool) -> None:
    """One step of SGD on the sum of the cross-entropies of every output with K entries."""
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    outputs = [t for t in tensors(call(model, example)) if t.shape[-1:] == (CLASSES,)]
    expect(bool(outputs), "no output has K entries")
    loss = torch.stack(
        [F.cross_entropy(o.flatten(0, -2).float(), labels_for(o)) for o in outputs]
    ).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    # Batches of two at the smallest size explode the gradients of deep plain networks as well.
    nn.utils.clip_grad_norm_(parameters, 1.0)
    torch.optim.SGD(parameters, lr=1e-3).step()
    for head in tempered_heads(model).values():
        expect(head.weight.grad is not None, "no gradient reached the head")
        if not on_meta:
            expect(bool(torch.isfinite(loss)), f"the loss is {loss.item()}")
            expect(int(head.norm.num_batches_tracked) >= 1, "the norm saw no batch")


def labels_for(output: Tensor) -> Tensor:
    return torch.arange(output[..., 0].numel(), device=output.device) % CLASSES


def logits(model: nn.Module, example: Any) -> Tensor:
    """The eval-mode logits: the named ones, or the first output with K entries."""
    with torch.no_grad():
        output = call(model, example)
    named = output.get("logits") if isinstance(output, Mapping) else None
    found = named if isinstance(named, Tensor) else tensors(output)[0]
    expect(CLASSES in found.shape[1:], f"logits of shape {tuple(found.shape)}")
    return found


def call(model: nn.Module, example: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(**example) if isinstance(example, Mapping) else model(example)


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, list | tuple) else []


def distance(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / a.abs().max().clamp(min=1.0))


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)
