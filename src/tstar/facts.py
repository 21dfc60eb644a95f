"""What is known of a training before it starts, read from the model, the data and the keywords.

``read_facts`` fills one frozen record (:class:`tstar.evidence.Facts`). What was not told is taken
to be usual, and the record says so. Nothing is decided here: that is done in ``advice.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tstar import output_layer as layers
from tstar.checks import positive, whole
from tstar.errors import unknown
from tstar.evidence import Facts
from tstar.samples import Samples, batch_count, open_samples
from tstar.surgery import check_task
from tstar.training import Keywords, Training, batches_per_step, steps_in, unwrapped

# What people take without thinking: SGD's rate by the norms inside; rates are for these batches.
RATES = {"batch-norms": 0.1, "layer-norms": 0.03, "no norms": 0.01, "frozen": 0.1}
BATCHES = {"scratch": 128, "finetune": 32}
DOMAINS = ("image", "text", "signal", "table")
EPOCHS = {"scratch": (200, 100), "finetune": (50, 10)}  # of SGD, of Adam
SAMPLES = {"scratch": 50_000, "finetune": 5_000}


def read_facts(
    model: nn.Module,
    data: Any,
    training: Keywords,
    *,
    head: Any = None,
    example_input: Any = None,
    loss: Any = None,
    num_classes: int | None = None,
    csg: Any = None,
    domain: str | None = None,
    train_accuracy: float | None = None,
) -> tuple[Facts, tuple[layers.Head, ...], Samples | None]:
    """The facts, the output layers, and the opened data; the arguments are ``recommend``'s."""
    example = layers.inputs_of(example_input)
    heads, net = tuple(layers.resolve_heads(model, head, example)), layers.unwrap(model)
    check_task(net, heads, loss)
    for found in heads:
        layers.check_head(net, found)
    if domain not in (None, *DOMAINS):
        raise unknown("domain", domain, DOMAINS)
    if train_accuracy is not None:
        train_accuracy = positive("train_accuracy", train_accuracy, zero=True, most=1.0)
    source = None if data is None else open_samples(data)
    K = heads[0].num_classes if num_classes is None else num_classes
    known: dict[str, Any] = dict(training)
    samples = known.get("samples")
    samples = getattr(source, "samples", None) if samples is None else samples
    norms, kind = norms_of(net, heads[0].layer, known.get("optimizer")), kind_of(net)
    assumed: tuple[str, ...] = ()
    if norms == "frozen":
        known["scenario"] = "scratch"  # a linear probe, whatever it is called
    elif known.get("scenario") is None and looks_trained(net):
        known["scenario"] = "finetune"
        assumed = ("scenario='finetune', as the weights look trained",)
    told, more = usual(_told(data, samples, known, heads[0]), norms, kind, samples)
    facts = Facts(
        heads[0].num_features,
        whole("num_classes", K, least=2),
        told,
        samples=None if samples is None else whole("samples", samples, least=1),
        parameters=sum(p.numel() for p in net.parameters()),
        domain=domain or domain_of(net),
        kind=None if norms == "frozen" else kind,
        norms=norms,
        fits=None if train_accuracy is None else train_accuracy >= 0.99,
        csg=None if csg is None else positive("csg", csg, zero=True),
        normed=preceding_norm(net, heads[0], example) is not None,
        batch=known.get("batch_size"),
        assumed=(*assumed, *more),
    )
    return facts, heads, source


def _told(data: Any, samples: Any, known: dict[str, Any], head: layers.Head) -> Training:
    """How one trains; a DataLoader tells its batch size and the steps of an epoch."""
    sampler = getattr(data, "batch_sampler", None)
    size = getattr(data, "batch_size", None) or getattr(sampler, "batch_size", None)
    batches = None
    if data is not None and known.get("batch_size") in (None, size):
        known["batch_size"], batches = size, batch_count(data)
    if known.get("epochs") is not None and known.get("steps") is None:
        if batches is not None and known.get("samples") is None:
            per_step = batches_per_step(known.get("accumulate", 1), known.get("optimizer"))
            known["steps"] = steps_in(known["epochs"], math.ceil(batches / per_step))
        elif samples is not None and known.get("batch_size") is not None:
            known["samples"] = samples
        elif samples is not None:
            size = BATCHES[known.get("scenario") or "scratch"]
            per_epoch = math.ceil(whole("samples", samples, least=1) / size)
            known["steps"] = steps_in(known["epochs"], per_epoch)
    return Training.of(**known, layer=head.layer)


def usual(
    told: Training, norms: str, kind: str, samples: int | None = None
) -> tuple[Training, tuple[str, ...]]:
    """The training with what people usually take for what was not told, and what that is."""
    scenario = told.scenario or "scratch"
    name = told.optimizer or ("sgd" if norms == "batch-norms" and kind == "convnet" else "adamw")
    sgd = Training(name).family == "sgd"
    size = told.batch_size or BATCHES[scenario]
    new, tuned = (RATES[norms], 0.01) if sgd else (1e-3, 5e-5 if kind == "transformer" else 1e-4)
    base = tuned if scenario == "finetune" else new
    factor = min(max(size / BATCHES[scenario], 0.25), 4.0) ** (1.0 if sgd else 0.5)
    passes = EPOCHS[scenario][not sgd] if (samples or 0) < 200_000 else 90  # ImageNet's
    steps = steps_in(passes, math.ceil((samples or SAMPLES[scenario]) / size))
    lr = float(f"{base * factor:.1g}")
    decay = 5e-4 if sgd else 0.0 if name == "adam" else 0.01
    usually: dict[str, tuple[Any, str]] = {
        "optimizer": (name, f"optimizer={name!r}"),
        "lr": (lr, f"lr={lr:g}"),
        "weight_decay": (decay, f"weight_decay={decay:g}"),
        "batch_size": (size, f"batch_size={size}"),
        "steps": (steps, f"{passes:g} epochs ({steps:,} steps)"),
        "scenario": (scenario, ""),
    }
    missing = {n: said for n, said in usually.items() if getattr(told, n) is None}
    known = replace(told, **{n: value for n, (value, _) in missing.items()})
    return known, tuple(words for _, words in missing.values() if words)


def looks_trained(net: nn.Module) -> bool:
    """Whether weights were loaded: most are frozen, a library says so, or norms' scales differ."""
    sizes = [(p.numel(), p.requires_grad) for p in net.parameters()]
    trained = sum(size for size, wanted in sizes if wanted)
    if 2 * trained < sum(size for size, _ in sizes):  # low-rank adapters
        return True
    if getattr(getattr(net, "config", None), "_name_or_path", ""):
        return True
    for module in net.modules():
        weight: Any = getattr(module, "weight", None)
        norm = "norm" in type(module).__name__.lower() and getattr(weight, "ndim", 0) == 1
        if norm and not weight.is_meta and bool((weight != weight[0]).any()):
            return True
    return False


def kind_of(net: nn.Module) -> str:
    """A transformer has attention, and no more batch norms than layer norms.

    Attention has a query (qkv, to_q, wq, …); a class's name alone counts if there are layer norms.
    """
    modules = dict(net.named_modules())
    names = [type(module).__name__.lower().replace("_", "") for module in modules.values()]
    batch = sum(isinstance(module, _BatchNorm) for module in modules.values())
    layer = sum(any(n in name for n in ("layernorm", "rmsnorm", "channelnorm")) for name in names)
    named = any(word in name for name in names for word in ("attention", "attn", "mhsa"))
    queries = {"q", "qkv", "query", "wq", "wqkv", "wquery"}
    asks = any(queries & {*p.rpartition(".")[2].lower().split("_")} for p in modules)
    if layer >= batch and (asks or "multiheadattention" in names or (layer and named)):
        return "transformer"
    if {*names} & {"gru", "lstm", "rnn"}:
        return "recurrent"
    return "convnet" if any("conv" in name for name in names) else "mlp"


def domain_of(net: nn.Module) -> str:
    """Images, texts, signals or tables, by the layers."""
    names = " ".join({type(module).__name__ for module in net.modules()})
    known = {"Conv2d": "image", "Embedding": "text", "Conv1d": "signal"}
    known |= dict.fromkeys(("GRU", "LSTM", "RNN"), "signal")
    return next((domain for layer, domain in known.items() if layer in names), "table")


def norms_of(model: nn.Module, layer: nn.Module, optimizer: Any = None) -> str:
    """``"frozen"`` if the output layer alone is trained, else the kind of the norms inside.

    What an optimizer that trains the layer does not hold is not trained. A network with both kinds
    counts as one with batch norms.
    """
    own = {id(parameter) for parameter in layer.parameters()}
    groups = getattr(unwrapped(optimizer), "param_groups", ())
    held = {id(p) for group in groups for p in group["params"]}
    trained = {id(p) for p in model.parameters() if p.requires_grad} - own
    if not (trained & held if own & held else trained):
        return "frozen"
    if any(isinstance(module, _BatchNorm) for module in model.modules()):
        return "batch-norms"
    kinds = ("layernorm", "groupnorm", "instancenorm", "rmsnorm", "channelnorm")
    names = " ".join(type(module).__name__.lower() for module in model.modules())
    return "layer-norms" if any(kind in names for kind in kinds) else "no norms"


def preceding_norm(
    model: nn.Module, head: layers.Head, example_input: Any = None
) -> tuple[str, nn.Module] | None:
    """The batch norm whose output, but for its shape, is the head's input: its path and itself.

    Same memory, same version: a flattened or (in eval mode) dropped-out output, and none that an
    activation has changed in place. It must be defined just before the layer.
    """
    last = ""
    for path, module in model.named_modules():
        if module is head.layer:
            break
        idle = isinstance(module, nn.Identity | nn.Dropout | nn.Flatten)  # in eval mode
        if next(module.children(), None) is None and not idle:
            last = path
    if not isinstance(model.get_submodule(last), _BatchNorm):
        return None
    normed: list[tuple[Tensor, int]] = []  # kept alive, so that no memory is used twice
    at_head: list[bool] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        normed.append((output, output._version))

    def compare(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        h = inputs[0]
        own = (h.untyped_storage()._cdata, h.numel(), h._version)
        at_head.append(any((o.untyped_storage()._cdata, o.numel(), v) == own for o, v in normed))

    def prepare(twin: nn.Module) -> None:
        normed.clear()
        at_head.clear()
        twin.get_submodule(last).register_forward_hook(keep)
        twin.get_submodule(head.path).register_forward_pre_hook(compare)

    try:
        with torch.no_grad():
            layers.run_copy(model, example_input, prepare)
    except Exception:
        return None
    return (last, model.get_submodule(last)) if at_head and all(at_head) else None
