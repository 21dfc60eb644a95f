"""What is known of a training before it starts: of the model, of the data, and how one trains.

``read_case`` fills one frozen record. It takes usual values for what is not known, and names
it. Nothing is decided here: that is done in ``recipes.py`` and ``advice.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tstar import output_layer as layers
from tstar.errors import whole
from tstar.samples import batch_count, first_batch, sample_count
from tstar.training import Training, batches_per_step, family, own_head_rate, steps_in, unwrapped

# What people take without thinking; rates are for these batches. Table and tests read them, too.
SGD_RATES = {"batch-norms": 0.1, "layer-norms": 0.03, "no norms": 0.01, "frozen": 0.1}
SGD_FINETUNING, ADAM_RATE = 0.01, 1e-3
ADAM_FINETUNING = {"transformer": 5e-5}  # 1e-4 for others
BATCH_SIZES = {"scratch": 128, "finetune": 32}
EPOCHS = {"scratch": (200, 100), "finetune": (50, 10)}  # of SGD, of Adam
SAMPLES = {"scratch": 50_000, "finetune": 5_000}
SPREAD = 0.1  # of a norm's scales: more than a first few steps make of ones


@dataclass(frozen=True)
class Case:
    """A model, its data and its training.

    ``norms`` is "batch-norms", "layer-norms", "no norms", or "frozen" if the output layer alone is
    trained; ``kind`` "convnet", "transformer", "mlp" or "recurrent", or "linear" for a frozen one.
    ``assumed`` names the fields of the training that were not known and are taken to be usual.
    """

    num_features: int  # M of the output layer
    num_classes: int  # K
    training: Training
    norms: str
    kind: str
    own_norm: bool = False  # the model's own batch norm stands just before the output layer
    temperature: float | None = None  # T of a model that is tempered already
    norm: str | None = None  # "batch" if it has the norm that ``temper`` inserts
    head_lr: float | None = None  # the output layer's, if it has a rate of its own
    batch: int | None = None  # samples of one forward pass, which a BatchNorm sees
    dense: bool = False  # a label for each pixel or token
    assumed: frozenset[str] = frozenset()

    @property
    def usual_lr(self) -> float:
        """The usual rate of such an optimizer, network and batch size."""
        t = self.training
        size = t.batch_size or BATCH_SIZES["scratch"]
        return usual_rate(t.optimizer or "", self.norms, self.kind, t.scenario or "scratch", size)


def read_case(
    model: nn.Module,
    data: Any = None,
    *,
    head: Any = None,
    example_input: Any = None,
    num_classes: int | None = None,
    **training: Any,
) -> tuple[Case, tuple[layers.Head, ...]]:
    """The case, and the output layers; the arguments are ``recommend``'s."""
    net = layers.ready(model)
    example = layers.inputs_of(example_input)
    if example is None and data is not None:
        example = layers.accepted(net, first_batch(data))
    heads = tuple(layers.resolve_heads(net, head, example))
    for record in heads:
        layers.check_head(net, record)
    norms, kind = norms_of(net, heads[0].layer, training.get("optimizer")), kind_of(net)
    assumed: set[str] = set()
    if norms == "frozen":
        training["scenario"] = "scratch"  # a linear probe, whatever it is called
    elif training.get("scenario") is None and looks_trained(net):
        training["scenario"] = "finetune"
        assumed.add("scenario")
    known = _read_training(data, training, heads[0].layer)
    complete = usual_training(known, norms, kind)
    assumed |= {n for n in complete.to_dict() if getattr(known, n) is None}
    if norms != "no norms" and complete.scenario == "scratch":
        assumed.discard("scenario")  # its norms are new: that goes unsaid
    optimizer = unwrapped(training.get("optimizer"))
    own_rate = None
    if hasattr(optimizer, "param_groups") and norms != "frozen":
        own_rate = own_head_rate(optimizer, heads[0].layer, training.get("scheduler"))
    every = layers.tempered_heads(net).values()
    tempered = next((each for each in every if each.layer is heads[0].layer), None)
    case = Case(
        heads[0].num_features,
        heads[0].num_classes if num_classes is None else whole("num_classes", num_classes, least=2),
        complete,
        norms,
        "linear" if norms == "frozen" else kind,
        own_norm=layers.has_preceding_norm(net, heads[0], example),
        temperature=None if tempered is None else float(tempered.temperature),
        norm=None if tempered is None or tempered.norm is None else "batch",
        head_lr=own_rate,
        batch=_batch_size(data, training),
        dense=heads[0].dense,
        assumed=frozenset(assumed),
    )
    return case, heads


# -- the training ----------------------------------------------------------------------------------
def _batch_size(data: Any, training: Mapping[str, Any]) -> int | None:
    """Samples of one batch of one process."""
    sampler = getattr(data, "batch_sampler", None)
    by_args = getattr(training.get("args"), "per_device_train_batch_size", None)
    by_loader = getattr(data, "batch_size", None) or getattr(sampler, "batch_size", None)
    return training.get("batch_size") or by_loader or by_args


def _read_training(data: Any, training: dict[str, Any], layer: nn.Module) -> Training:
    """How one trains; a DataLoader knows its batch size and the steps of an epoch."""
    known = dict(training)
    own_batches = known.get("batch_size") in (None, _batch_size(data, {}))
    own_batches &= known.get("samples") is None
    if data is not None:
        known["batch_size"] = _batch_size(data, known)
        known["samples"] = known.get("samples") or sample_count(data)
    if known.get("args") is not None and known.get("accumulate", 1) == 1:
        known["accumulate"] = known["args"]
    record = Training.of(**known, layer=layer)
    batches = batch_count(data) if data is not None and own_batches else None
    if known.get("steps") is None and record.epochs is not None and batches is not None:
        per_step = batches_per_step(known.get("accumulate", 1), known.get("optimizer"))
        record = replace(record, steps=steps_in(record.epochs, batches, per_step))
    return record


def usual_training(known: Training, norms: str, kind: str) -> Training:
    """The training with what people usually take for what is not known."""
    scenario = known.scenario or "scratch"
    name = known.optimizer or ("sgd" if norms == "batch-norms" and kind == "convnet" else "adamw")
    sgd = family(name) == "sgd"
    size, samples = known.batch_size or BATCH_SIZES[scenario], known.samples or SAMPLES[scenario]
    usual_epochs = EPOCHS[scenario][not sgd] if samples < 200_000 else 90  # ImageNet's
    usual = {
        "optimizer": name,
        "lr": usual_rate(name, norms, kind, scenario, size),
        "weight_decay": 5e-4 if sgd else 0.0 if name == "adam" else 0.01,
        "batch_size": size,
        "steps": steps_in(known.epochs or usual_epochs, samples, size),
        "scenario": scenario,
    }
    missing = {n: value for n, value in usual.items() if getattr(known, n) is None}
    return replace(known, **missing)  # type: ignore[arg-type]


def usual_rate(optimizer: str, norms: str, kind: str, scenario: str, batch_size: int) -> float:
    """The rate that people take for such a network and batch, to one digit.

    SGD's grows with the root of the batch, within a factor of two (results/recipes).
    """
    sgd = family(optimizer) == "sgd"
    if scenario == "finetune":
        rate = SGD_FINETUNING if sgd else ADAM_FINETUNING.get(kind, 1e-4)
    else:
        rate = SGD_RATES[norms] if sgd else ADAM_RATE
    factor = min(max(batch_size / BATCH_SIZES[scenario], 0.25), 4.0) ** 0.5 if sgd else 1.0
    return float(f"{rate * factor:.1g}")


# -- the model -------------------------------------------------------------------------------------
def looks_trained(net: nn.Module) -> bool:
    """Whether weights were loaded: most are frozen, a library says so, or norms' scales differ."""
    trained = sum(p.numel() for p in net.parameters() if p.requires_grad)
    if 2 * trained < sum(p.numel() for p in net.parameters()):  # low-rank adapters
        return True
    if getattr(getattr(net, "config", None), "_name_or_path", ""):
        return True
    for module in _own_modules(net).values():
        weight: Any = getattr(module, "weight", None)
        norm = "norm" in type(module).__name__.lower() and getattr(weight, "ndim", 0) == 1
        if norm and not weight.is_meta and bool(((weight - weight.mean()).abs() > SPREAD).any()):
            return True
    return False


def _own_modules(net: nn.Module) -> dict[str, nn.Module]:
    """The modules of a model by path, without the norms that ``temper`` inserted."""
    inserted = {id(head.norm) for head in layers.tempered_heads(net).values()}
    return {path: each for path, each in net.named_modules() if id(each) not in inserted}


def kind_of(net: nn.Module) -> str:
    """A transformer has attention, and no more batch norms than layer norms.

    Attention has a query (qkv, to_q, wq, …); a class's name alone counts if there are layer norms.
    """
    modules = _own_modules(net)
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


def norms_of(model: nn.Module, layer: nn.Module, optimizer: Any = None) -> str:
    """``"frozen"`` if the output layer alone is trained, else the kind of the norms inside.

    What an optimizer that trains the layer does not hold is not trained. A network with both kinds
    counts as one with batch norms. A norm that ``temper`` inserted does not count.
    """
    heads = layers.tempered_heads(model).values()
    head = {id(p) for each in heads for p in each.parameters()} | {*map(id, layer.parameters())}
    groups = getattr(unwrapped(optimizer), "param_groups", ())
    held = {id(p) for group in groups for p in group["params"]}
    trained = {id(p) for p in model.parameters() if p.requires_grad} - head
    if not (trained & held if head & held else trained):
        return "frozen"
    inside = _own_modules(model).values()
    if any(isinstance(module, _BatchNorm) for module in inside):
        return "batch-norms"
    kinds = ("layernorm", "groupnorm", "instancenorm", "rmsnorm", "channelnorm")
    names = " ".join(type(module).__name__.lower() for module in inside)
    return "layer-norms" if any(kind in names for kind in kinds) else "no norms"
