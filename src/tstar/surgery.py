"""temper, untemper and fold: put the tempered head in the output layer's place, and take it away.

Belongs here: every change of a model or of its checkpoint, and what refuses one. The head itself
and its algebra are in ``head.py``; how a training goes on afterwards is watched by ``monitor.py``.
Numbers come in; what to advise is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

from torch import Tensor, nn

from tstar import output_layer as layers
from tstar.errors import TstarError, guarded, positive, warn
from tstar.formula import explain
from tstar.groups import join_optimizer, live_optimizer
from tstar.head import Norm, TemperedHead, check_agreement, is_output_layer, replaced, weight_of
from tstar.imports import require
from tstar.monitor import Guard, shorten_memory
from tstar.task import check_task
from tstar.training import family, optimizer_name


@guarded("temper() failed in your model")
def temper(
    model: nn.Module,
    temperature: SupportsFloat | None = None,
    *,
    csg: SupportsFloat | None = None,
    variant: str | None = None,
    head: str | layers.Head | Sequence[str | layers.Head] | None = None,
    example_input: Any = None,
    norm: Norm | None = "batch",
    optimizer: Any = None,
    loss: Any = None,
    steps: int | None = None,
    inplace: bool | None = None,
) -> nn.Module:
    """The paper's method: BatchNorm just before the output layer, and logits divided by T*.

    M and K are read from the model. Device, dtype, train/eval mode, ``requires_grad`` and hooks are
    kept. The head watches its training: a warning says if the optimizer does not train it, or if
    the batches do not suit a BatchNorm.

    Args:
        model: any classifier that ends in a linear layer (or a 1×1 convolution).
        temperature: T; by default the paper's T* (``cn``, or ``csgcn`` with ``csg``).
        csg: the difficulty of the data, from :func:`tstar.csg`, for the paper's full formula.
        variant: another formula of the paper, such as ``"base"``.
        head: the output layer's path, its record, several paths, or ``"all"`` for heads that are
            averaged; found by :func:`tstar.find_head` by default. Each gets the T* of its own K.
        example_input: passed to :func:`tstar.find_head`.
        norm: ``"batch"`` as in the paper, or ``None`` for the division alone.
        optimizer: a torch optimizer that was built from ``model`` already. The model is then
            changed in place, and the norm's parameters join the optimizer's group of the head.
        loss: the loss that you train with, a function, a module, ``"cross_entropy"`` or
            ``"nll_loss"``: refused unless a softmax follows the logits.
        steps: the optimizer steps of the training. In fewer than 100 the norm's statistics would
            lag behind, so its momentum is raised.
        inplace: change ``model`` itself; otherwise a copy, unless there is a live optimizer.

    Raises:
        TstarError: the output layer or the loss is not one that T applies to.

    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 10))
    >>> temper(model)[2].temperature
    tensor(5.3538)
    >>> temper(model, 4.0)[2].temperature
    tensor(4.)
    """
    _refuse_wrapper(model)
    heads = _heads(model, head, example_input, loss)
    temperatures = _temperatures(heads, temperature, csg, variant)
    if optimizer is not None and inplace is False:
        raise TstarError("The optimizer holds this model and not its copy: leave inplace out.")
    live = None if optimizer is None else live_optimizer(optimizer, [h.layer for h in heads])
    if temperature is None and live is not None and family(optimizer_name(live)) != "sgd":
        warn(
            f"The paper's T* was measured with SGD, and not with {type(live).__name__}: "
            "tstar.recommend says what is known of it."
        )
    if not (inplace or live):
        model = layers.scratch_copy(model)
    elif any(record.path == "" for record in heads):
        raise TstarError(
            "A model that is its own output layer cannot be changed in place: wrap it, "
            "nn.Sequential(model), or without a live optimizer leave inplace=False."
        )
    for record, T in zip(heads, temperatures, strict=True):
        layer = model.get_submodule(record.path)
        new = TemperedHead(layer, T, norm)
        new.guard = Guard()
        shorten_memory(new.norm, steps)
        model = replaced(model, layer, new)
    for new in layers.tempered_heads(model).values() if live is not None else ():
        join_optimizer(live, new)
    return model


def _temperatures(
    heads: Sequence[layers.Head], temperature: Any, csg: Any, variant: str | None
) -> list[float]:
    """T of each head: the number given, or the paper's for its own M and K."""
    if temperature is not None:
        if csg is not None or variant is not None:
            raise TstarError("csg and variant belong to the paper's T*; leave temperature out.")
        return [positive("temperature", temperature)] * len(heads)
    # K is known of every head; a variant that was named may leave it out.
    explained = [explain(h.num_features, h.num_classes, csg, variant=variant) for h in heads]
    notes = {note: None for each in explained for note in each.notes}
    if notes:
        warn(f"T* = {explained[0].temperature:.4g}, but: {' '.join(notes)}")
    return [each.temperature for each in explained]


@guarded("fold() failed in your model")
def fold(model: nn.Module, *, inplace: bool = False, allow_bias: bool = False) -> nn.Module:
    """The plain architecture again, with the eval-mode logits of the tempered one.

    The state dict has the original keys and loads into the untouched architecture. Tempered and
    folded heads are compared on random features first: if a hook or a layer's own ``forward`` would
    give other logits, folding is refused. A plain model comes back as it is.

    Args:
        model: a tempered model in eval mode.
        inplace: change ``model`` itself.
        allow_bias: add a bias (one new key) to an output layer that has none to absorb the norm's
            shift. ``from_pretrained`` would drop that key; :func:`tstar.load_folded` does not.

    Raises:
        TstarError: the model is in training mode, sharded, or would give other logits.

    >>> tempered = temper(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 3)), 4.0, norm=None)
    >>> fold(tempered.eval())[1]
    Linear(in_features=16, out_features=3, bias=True)
    """
    inner = layers.unwrap(model)
    heads = layers.tempered_heads(inner)
    if heads and _is_sharded(inner):
        raise TstarError(
            "The weights are sharded (fully_shard). Gather them (get_model_state_dict with "
            "full_state_dict=True), save them, and fold the file with the command 'tstar fold'."
        )
    bare = [path for path, head in heads.items() if head.bias is None]
    working = layers.working_heads(inner)

    def fuse(path: str, head: TemperedHead) -> nn.Module:
        if path in working and not head.training:
            if head.batches_seen == 0:
                warn(
                    "The norm before the output layer has never seen a training batch. Train, or "
                    "load a trained checkpoint, before folding."
                )
            if head.guard is not None:
                head.guard.check_statistics(head)
        return head.fuse(allow_bias=allow_bias, path=path)

    folded = _dismantle(model, inplace, fuse)
    gained = [p for p in bare if getattr(folded.get_submodule(p), "bias", None) is not None]
    if gained and hasattr(folded, "save_pretrained"):
        kind = type(folded).__name__
        warn(
            f"The output layer {gained[-1]!r} gained a bias, which {kind}.from_pretrained drops, "
            "giving other logits: after save_pretrained(folder) (and before it "
            f"merge_and_unload(), if there is an adapter), use tstar.load_folded({kind}, folder)."
        )
    return folded


@guarded("untemper() failed in your model")
def untemper(model: nn.Module, *, inplace: bool = False) -> nn.Module:
    """The original layers again, without norm and T: other logits, unlike :func:`fold`."""

    def layer_of(path: str, head: TemperedHead) -> nn.Module:
        if not head.training:  # what was put on the head would be lost with it
            check_agreement(head, lambda h: head.layer(head.normalize(h)) / head.temperature, path)
        return head.layer

    return _dismantle(model, inplace, layer_of)


def _dismantle(
    model: nn.Module, inplace: bool, make: Callable[[str, TemperedHead], nn.Module]
) -> nn.Module:
    model = layers.unwrap(model)
    if not inplace and layers.tempered_heads(model):
        model = layers.scratch_copy(model)
    for path, head in layers.tempered_heads(model).items():
        model = replaced(model, head, make(path, head))
    return model


def _heads(model: nn.Module, named: Any, example_input: Any, loss: Any) -> list[layers.Head]:
    """The output layers to temper, if all is fit for it."""
    for path in layers.tempered_heads(model):
        raise TstarError(
            f"The model is already tempered, at {path!r}; use its set_temperature(T) to change T, "
            "or tstar.untemper(model) first."
        )
    heads = layers.resolve_heads(model, named, example_input)
    check_task(model, heads, loss)
    for head in heads:
        layers.check_head(model, head)
        if hasattr(model, "peft_config") and "modules_to_save" not in head.path:
            warn(
                f"Saving the adapter will miss {head.path!r}: its weight, the norm's statistics "
                "and T. Name it in modules_to_save, or give the adapter's configuration a task "
                "type."
            )
    return heads


# --- what cannot be tempered as it stands ---
def _refuse_wrapper(model: nn.Module) -> None:
    """Wrapped, compiled, sharded and scripted models: tempering comes before."""
    inner = layers.ready(model)
    prepared = hasattr(model, "_original_forward") and hasattr(model.forward, "__wrapped__")
    if prepared or inner is not model or _is_sharded(model):
        what = "a model after accelerator.prepare" if prepared else type(model).__name__
        raise TstarError(
            f"The model must be tempered before it is wrapped, compiled or sharded, got {what}, "
            "which would go on with the untempered model. Temper the plain model, then wrap it, "
            "and build the optimizer last."
        )


def _is_sharded(model: nn.Module) -> bool:
    """Whether FSDP2 (``fully_shard``) or tensor parallelism has cut the parameters into pieces."""
    return any(hasattr(p, "device_mesh") and hasattr(p, "placements") for p in model.parameters())


# --- checkpoints ---
@guarded("load_folded() failed in your model or folder")
def load_folded(model_class: Any, folder: str | Path, **options: Any) -> Any:
    """``model_class.from_pretrained(folder, **options)``, and the bias that folding added.

    About half of transformers' sequence classifiers have an output layer without a bias, and
    BatchNorm's shift needs one. ``from_pretrained`` alone drops it and gives other logits. If no
    bias was added this is ``from_pretrained``.

    Args:
        model_class: what you would call ``from_pretrained`` of, such as
            ``AutoModelForSequenceClassification``.
        folder: a local folder that ``save_pretrained`` wrote.
        options: passed to ``from_pretrained``.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TstarError(
            f"folder must be a local one that save_pretrained wrote, got {str(folder)!r}; fetch a "
            "model of the Hub with huggingface_hub.snapshot_download first."
        )
    biases = _biases(folder)
    model = model_class.from_pretrained(folder, **options)
    for path, layer in model.named_modules():
        bias = biases.get(f"{path}.bias")
        if bias is None or not is_output_layer(layer) or layer.bias is not None:
            continue
        weight = weight_of(layer)
        dtype = weight.dtype if weight.is_floating_point() else bias.dtype  # if it is quantized
        layer.bias = nn.Parameter(bias.to(weight.device, dtype), weight.requires_grad)
    return model


def _biases(folder: Path) -> dict[str, Tensor]:
    """Every tensor whose key ends in ``.bias``, from the weights in a folder."""
    safetensors = require("safetensors", "text")
    biases: dict[str, Tensor] = {}
    for path in folder.glob("model*.safetensors"):
        with safetensors.safe_open(path, framework="pt") as file:
            keys = list(file.keys())
            if any(key.endswith(".temperature") for key in keys):
                raise TstarError(
                    f"{str(folder)!r} holds a tempered model, not a folded one; fold it with "
                    "tstar.fold before save_pretrained, or its file with the command 'tstar fold'."
                )
            biases |= {key: file.get_tensor(key) for key in keys if key.endswith(".bias")}
    return biases
