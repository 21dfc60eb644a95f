"""Put the tempered head in the output layer's place, and fold it away again."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, SupportsFloat

from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning, shown
from tstar.numbers import whole
from tstar.surgery.agreeing import warn_of_misfit, warn_of_rate
from tstar.surgery.checkpoints import tempered_prefixes
from tstar.surgery.example_inputs import cheap_inputs
from tstar.surgery.finding import (
    Head,
    check_head,
    resolve_heads,
    tempered_heads,
    unwrap,
    working_heads,
)
from tstar.surgery.folded import warn_of_bias
from tstar.surgery.folding import check_numbers
from tstar.surgery.head import Norm, TemperedHead, known_norm, usable
from tstar.surgery.layers import replaced
from tstar.surgery.leaving import expect_left, mark_left, unmark_left
from tstar.surgery.monitoring import (
    expect_update,
    join_optimizer,
    live_optimizer,
    trains,
)
from tstar.surgery.probing import inputs_of, run_once
from tstar.surgery.recalibrating import shorten_memory
from tstar.surgery.refusing import (
    check_task,
    is_sharded,
    refuse_second_holder,
    refuse_wrapper,
    warn_of_adapter,
    warn_of_others,
)
from tstar.surgery.speed import backbone_scale, known_backbone


def temper(
    model: nn.Module,
    temperature: SupportsFloat,
    *,
    head: str | Head | Sequence[str] | None = None,
    example_input: Any = None,
    norm: Norm | Literal["advised"] | None = "advised",
    backbone: float | Literal["matched"] | None = None,
    optimizer: Any = None,
    loss: Any = None,
    steps: int | None = None,
    state_dict: Mapping[str, Any] | None = None,
    inplace: bool | None = None,
) -> nn.Module:
    """The model with BatchNorm inserted just before its output layer and its logits divided by T.

    Device, dtype, train/eval mode, ``requires_grad`` and hooks are kept.

    Args:
        model: any classifier that ends in a linear layer (or a 1×1 convolution).
        temperature: T, or what :func:`tstar.recommend` returns. The learning rate stays yours to multiply by
            ``advice.lr_factor``. An advice to leave the model gives back the model itself, as it is or with the weights
            of ``state_dict``; :func:`fold`, :func:`tstar.watch` and the like then have nothing to do, and do nothing.
        head: the output layer's path, its record, several paths (as for a model that returns the logits of several
            tasks), or ``"all"`` (heads that are averaged, auxiliary classifiers); found by :func:`tstar.find_head` by
            default.
        example_input: passed to :func:`tstar.find_head`.
        norm: ``"batch"`` as in the paper, ``"layer"``, or ``None`` for the division alone. By default what the advice
            says, and ``"batch"`` for a number.
        backbone: the scale of the gradient into the backbone. ``None`` leaves it as it is (or as the advice says):
            divided by T, and with BatchNorm by the features' deviation. ``"matched"`` makes it as large as in the plain
            model, measured on ``example_input``, a batch of your training data. A number is c of
            :class:`tstar.TemperedHead`.
        optimizer: a torch optimizer that was built from ``model`` already, or the one in the advice. The model is then
            changed in place, and the norm's parameters join the optimizer's group of the head.
        loss: the loss that you train with, a function, a module or a name: refused unless a softmax follows the
            logits.
        steps: the optimizer steps of the training, or those of the advice. In fewer than 100 the norm's statistics
            would lag behind, so that its momentum is raised.
        state_dict: a checkpoint to start from, of the plain model or of a tempered one.
        inplace: change ``model`` itself; otherwise a copy is changed, unless there is a live optimizer. A model that
            is left is copied with ``inplace=False`` alone.
    """
    refuse_wrapper(model)
    if isinstance(temperature, Mapping):
        raise TstarError(
            f"temperature must be a number or an advice, got {shown(temperature)}; make an advice of its JSON with "
            "tstar.Recommendation.from_dict."
        )
    T, example_input = usable(temperature), inputs_of(example_input)
    if isinstance(temperature, Tensor):
        temperature = T  # a tensor's "norm" is no advice
    steps = None if steps is None else whole("steps", steps, least=1)
    for path in tempered_heads(model):
        raise TstarError(
            f"The model is already tempered, at {path!r}; use its set_temperature(T) to change T, or "
            "tstar.untemper(model) first."
        )
    told = getattr(temperature, "head", None) if head is None else head
    heads = resolve_heads(model, told, example_input)
    check_task(model, heads, loss)
    for found in heads:
        check_head(model, found)
    live = _live_optimizer(optimizer, temperature, heads, inplace)
    chosen = known_norm(getattr(temperature, "norm", "batch") if norm == "advised" else norm)
    if known_backbone(backbone) is None:
        backbone = getattr(temperature, "backbone", None)
    warn_of_misfit(temperature, heads, optimizer if live is None else live)
    if getattr(temperature, "leave", False):
        return _left(model, heads, state_dict, inplace)
    refuse_second_holder(model, heads)
    inplace = bool(inplace) or live is not None
    if live is not None:
        warn_of_rate(temperature, live.param_groups, heads)
    if inplace and any(found.path == "" for found in heads):
        raise TstarError(
            "A model that is its own output layer cannot be changed in place; use inplace=False."
        )
    if not inplace:
        model = _copy(model)
    if steps is None:
        steps = getattr(getattr(temperature, "training", None), "steps", None)

    def tempered(model: nn.Module) -> nn.Module:
        factors = [backbone_scale(backbone, model, found, example_input, chosen) for found in heads]
        for found, factor in zip(heads, factors, strict=True):
            layer = model.get_submodule(found.path)
            unmark_left(layer)
            new = TemperedHead(layer, T, chosen, factor)
            shorten_memory(new.norm, steps)
            model = replaced(model, layer, new)
        return model

    model = tempered(model) if state_dict is None else _from(state_dict, model, tempered)
    _verify(model, example_input, found_by_running=told is None)
    warn_of_adapter(model, heads)
    if head is None or head == "all":
        warn_of_others(model, heads)
    for new in tempered_heads(model).values():
        if live is not None:
            join_optimizer(live, new)
        expect_update(new)
    return model


def fold(model: nn.Module, *, inplace: bool = False, allow_bias: bool = False) -> nn.Module:
    """The plain architecture again, with the eval-mode logits of the tempered one and nothing left to deploy.

    The state dict has the original keys and loads into the untouched architecture. An output layer without a
    bias cannot absorb the norm's shift; ``allow_bias=True`` adds one (one new key). ``from_pretrained`` would
    drop that key, so a model with ``save_pretrained`` then warns: :func:`tstar.load_folded` loads it. A model that
    :func:`temper` left as it was, on advice, comes back as it is.
    """
    inner = unwrap(model)
    heads = tempered_heads(inner)
    bare = [path for path, head in heads.items() if head.bias is None]
    if heads and is_sharded(inner):
        raise TstarError(
            "The weights are sharded (fully_shard). Gather them with torch.distributed.checkpoint.state_dict."
            "get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)), save that, "
            "and fold the file with the command 'tstar fold'."
        )
    folded = _dismantle(
        model, inplace, lambda path, head: head.fuse(allow_bias=allow_bias, path=path)
    )
    warn_of_bias(folded, bare)
    return folded


def untemper(model: nn.Module, *, inplace: bool = False) -> nn.Module:
    """The original layers again, without the norm and without T: other logits, unlike :func:`fold`.

    A model that :func:`temper` left as it was, on advice, comes back as it is.
    """
    return _dismantle(model, inplace, lambda path, head: head.layer)


def _left(model: nn.Module, heads: Sequence[Head], state: Any, inplace: bool | None) -> nn.Module:
    """The model itself, so that an optimizer built before goes on training it, marked as left; its weights from ``state``."""
    if inplace is False:
        model = _copy(model)
    if state is not None:
        if isinstance(state, Mapping) and tempered_prefixes(state):
            raise TstarError(
                "state_dict must be that of a plain model, since the advice is to leave this one, got a tempered model's. "
                "Fold it first (the command 'tstar fold'), or go on with it: tstar.temper(model, T, state_dict=…)."
            )
        model = _from(state, model, lambda plain: plain)
    for found in heads:
        mark_left(model.get_submodule(found.path))
    return model


def _live_optimizer(given: Any, advice: Any, heads: Sequence[Head], inplace: bool | None) -> Any:
    """The optimizer that already holds the heads' parameters, if there is one."""
    live = live_optimizer(getattr(advice, "optimizer", None) if given is None else given)
    if live is None:
        return None
    if not trains(live, [p for found in heads for p in found.layer.parameters()]):
        if given is None:
            return None  # the advice's is another model's
        raise TstarError(
            "The optimizer must hold the parameters of the model's output layer, got one that does not; build it from "
            "model.parameters() after tstar.temper, and leave optimizer= out."
        )
    if inplace is False:
        raise TstarError(
            "The optimizer holds the parameters of this model, so that a copy would not be trained. Leave inplace out, "
            "or temper first and build the optimizer from the tempered model."
        )
    return live


def _from(state: Any, model: nn.Module, tempered: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """The model, tempered, with the weights of a checkpoint; where they do not fit, it stays as it was."""
    if not isinstance(state, Mapping) or not all(isinstance(key, str) for key in state):
        raise TstarError(
            f"state_dict must map the names of parameters to tensors, got {shown(state)}; load a file with "
            "torch.load(path, weights_only=True) first."
        )
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        if not tempered_prefixes(state):
            model.load_state_dict(state)
            model = tempered(model)
        else:
            model = tempered(model)
            model.load_state_dict(state)
        for path, head in tempered_heads(model).items():
            check_numbers(path, head, "state_dict cannot be trained from")
    except Exception as error:
        for head in tempered_heads(model).values():
            model = replaced(model, head, head.layer)
        model.load_state_dict(before)
        if isinstance(error, TstarError):
            raise
        raise TstarError(f"state_dict must fit the model: {error}") from error
    return model


def _verify(model: nn.Module, example_input: Any, *, found_by_running: bool) -> None:
    """One run, where one is cheap, to see that the model calls the tempered heads and not the layers in them."""
    heads = tempered_heads(model)
    if any(p.is_meta for p in model.parameters()):
        return
    examples = cheap_inputs(model) if example_input is None else iter([example_input])
    calls: Counter[str] = Counter()

    def count(key: str) -> Any:
        return lambda module, inputs: calls.update([key])

    def hook() -> list[Any]:
        calls.clear()
        outer = [h.register_forward_pre_hook(count(path)) for path, h in heads.items()]
        inner = [h.layer.register_forward_pre_hook(count(f"{p}.layer")) for p, h in heads.items()]
        return outer + inner

    ran = run_once(model, examples, hook)
    unused = ran and found_by_running and not any(calls[path] for path in heads)
    for path, head in heads.items():
        if unused or calls[f"{path}.layer"] > calls[path]:
            replaced(model, head, head.layer)
            raise TstarError(
                f"The model calls the layer {path!r} past the norm and T: something outside of its modules holds it "
                "(a list, a closure). Look the layer up when it is called."
            )


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise TstarError(
            f"The model cannot be copied (copy.deepcopy raised {type(error).__name__}: {error}); pass inplace=True."
        ) from error


def _dismantle(model: nn.Module, inplace: bool, make: Any) -> nn.Module:
    model = unwrap(model)
    if not tempered_heads(model):
        expect_left(model)
    if not inplace:
        model = _copy(model)
    working = working_heads(model)
    for path, head in tempered_heads(model).items():
        idle = path not in working  # that its norm saw nothing is no news
        with warnings.catch_warnings() if idle else nullcontext():
            if idle:
                warnings.simplefilter("ignore", TstarWarning)
            new = make(path, head)
        model = replaced(model, head, new)
    return model
