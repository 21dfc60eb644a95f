"""From a model, its data and the way of training to a temperature with its reasons."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import nn

from tstar.data.door import Source, count_classes, open_data
from tstar.data.streams import batch_count
from tstar.errors import TstarError, shown, unknown
from tstar.formula import similar
from tstar.formula.cautions import (
    Notice,
    by_gravity,
    network_size,
    notices,
    transformer_rate,
)
from tstar.formula.choice import uses_csg
from tstar.formula.coefficients import Coefficients
from tstar.formula.equation import computed, judged
from tstar.formula.reading import unwrapped
from tstar.formula.training import Keywords, Training, steps_in
from tstar.numbers import whole
from tstar.recommendation import Recommendation, at_rate
from tstar.surgery.example_inputs import cheap_inputs
from tstar.surgery.finding import Head, check_head, resolve_head, unwrap
from tstar.surgery.head import Norm
from tstar.surgery.network import attends, is_mostly_frozen, norms_of
from tstar.surgery.preceding import defined_before, preceding_norm
from tstar.surgery.probing import RESHAPES, SCALES, inputs_of, run_once, tensors_in
from tstar.surgery.refusing import check_task, smoothing_of
from tstar.surgery.speed import FAR, matched_backbone

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SIZE = 32  # of images that are read by name, as for csg
_MEASURED = 10_000  # samples that are enough for csg; the value differs little from that of more


def recommend(
    model: nn.Module,
    data: Any = None,
    *,
    num_classes: int | None = None,
    csg: Any = None,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    norm: str | None = "batch",
    loss: Any = None,
    head: str | Head | None = None,
    example_input: Any = None,
    **training: Unpack[Keywords],
) -> Recommendation:
    """The temperature to train this model at, with its reasons and what to be careful about.

    It reads the model and, where the formula uses them, the data. It changes nothing: mode, gradients, buffers and
    random generators are as before.

    Args:
        model: the classifier; M and K are read from its output layer.
        data: the training set, in any form that :func:`tstar.csg` takes, or a pair of samples and labels. Its
            difficulty is measured only if the formula in use needs it; its length, of a ``DataLoader`` that in batches,
            counts the steps of ``epochs``.
        num_classes: K, where the model's output layer will be replaced later.
        csg: the difficulty, where it is known already (a number or what :func:`tstar.csg` returns).
        variant: the paper's ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"``; chosen by evidence by default.
        coefficients: a fit of your own in place of the paper's; with a budget it needs optimizer, lr and steps.
        norm: ``"batch"``, or ``None`` if no norm may be inserted.
        loss: the loss that you train with; refused unless a softmax follows the logits. Label smoothing is read from
            it.
        head: the output layer's path, where the model has several.
        example_input: an input that the model accepts, where the output layer is not found without one; a batch of
            training data also tells how fast SGD would train the backbone.
        training: how you train, in the same keywords as :func:`tstar.temperature`: ``optimizer`` (a name, a pair
            such as ``("sgd", 0.1)``, or a torch optimizer), ``lr``, ``momentum``, ``steps``, ``epochs``,
            ``batch_size``, ``weight_decay``, ``scheduler``, ``label_smoothing``, ``scenario``, and
            ``tuned`` where a search has set rate and decay for this model: they then stay, and the gain is over that.
    """
    if not isinstance(head, str | Head | None):
        raise TstarError(f"head must be the path of a layer, or its record, got {shown(head)}.")
    if head == "all":
        raise TstarError("recommend needs one output layer, got head='all'; name one of them.")
    if norm is not None and not (isinstance(norm, str) and norm == "batch"):
        raise unknown("norm", norm, ("batch",))
    example_input = inputs_of(example_input)
    found, net = resolve_head(model, head, example_input), unwrap(model)
    check_task(net, [found], loss)
    check_head(net, found)
    K = whole("num_classes", found.num_classes if num_classes is None else num_classes, least=2)
    source = None if data is None else open_data(data, size=_SIZE)
    if training.get("label_smoothing") is None:
        training["label_smoothing"] = smoothing_of(loss)
    told = _told(data, source, training, found)
    norms = norms_of(net, found.layer, _held(training.get("optimizer"), found))
    extra: list[Notice] = []
    if norms == "frozen" and norms_of(net, found.layer) != "frozen":
        extra.append(
            Notice(
                "note",
                "probe",
                "The optimizer holds the output layer alone, so this is taken for a linear probe. If another one trains the "
                "rest, pass this one as a name and a rate, such as ('sgd', 0.1).",
            )
        )
    if told.scenario == "finetune" and norms == "frozen":  # a linear probe, whatever it is called
        told = replace(told, scenario=None)
    elif told.scenario is None and norms != "frozen" and is_mostly_frozen(net):
        told = replace(told, scenario="finetune")
        extra.append(Notice("note", "frozen", "Most of the parameters are frozen, so this is taken for fine-tuning."))  # fmt: skip
    if source is not None:
        extra += _class_count(source, K)
        if csg is None and uses_csg(told, variant, coefficients):
            csg = _measure(source, K, extra)
    ours = variant is None and coefficients is None
    leave, evidence, factor = norm is None, None, 1.0
    transformer = attends(net)
    failing = tuple(transformer_rate(told)) if transformer else ()
    extra += failing
    if leave:
        extra.append(
            Notice(
                "caution",
                "no-norm",
                "The formula presupposes a BatchNorm before the output layer, whose features have a known scale; without "
                "it no T is known to help.",
            )
        )
    elif ours and failing:
        leave = True
    elif ours and told.measured:
        chosen = similar.choice(told)
        recipe = similar.recipe_of(told)
        factor = similar.rate_of(told)
        kept = transformer and any(transformer_rate(at_rate(told, factor)))
        if kept:
            recipe, factor = "bn", 1.0
            extra.append(Notice("note", "rate-kept", "A higher rate would be one at which transformers failed with SGD, so yours is kept."))  # fmt: skip
        samples = training.get("samples")
        if samples is not None:
            samples = whole("samples", samples, least=1)
        elif source is not None:
            samples = source.samples
        evidence = similar.nearest(told, found.num_features, K, samples, norms, recipe)
        nothing = chosen["recipe"] == similar.LEAVE
        leave = nothing or not evidence.supports
        if not kept and (not leave or (nothing and not evidence.far)):
            extra.append(_choice(told, chosen))
    factor = 1.0 if leave else factor
    result = computed(found.num_features, K, csg, at_rate(told, factor), variant, coefficients)
    if ours:
        result = judged(result, evidence)
    leave = leave or result.leave
    result = replace(result, leave=leave, temperature=1.0 if leave else result.temperature)
    result = replace(result, notices=notices(result, K))
    follows = None
    if norm and defined_before(net, found.layer):
        follows = preceding_norm(net, found, example_input)
    extra += _network(found, None if follows is None else follows[0])
    if not leave:
        extra += _own_scale(found)
    if num_classes is None:
        extra += _reshaped(net, found, example_input)
    if not leave and example_input is not None and told.family == "sgd" and norms != "frozen":
        inserted: Norm | None = None if follows else "batch"
        extra += _speed(net, found, factor / result.temperature, example_input, inserted)
    if evidence is not None and not leave and norms != "frozen":
        extra += network_size(told, sum(parameter.numel() for parameter in net.parameters()))
    optimizer = training.get("optimizer")
    return Recommendation(
        temperature=result.temperature,
        head=found,
        num_features=found.num_features,
        num_classes=K,
        csg=None if csg is None else float(csg),
        explanation=result,
        notices=by_gravity(*extra, *(n for n in result.notices if n.code != "higher-rate")),
        norm=None if follows or leave else norm,
        lr_factor=factor,
        leave=leave,
        evidence=evidence,
        optimizer=optimizer if hasattr(optimizer, "param_groups") else None,
    )


def _choice(training: Training, chosen: Mapping[str, Any]) -> Notice:
    """Why this recipe: what all measured trainings with this kind of optimizer say."""
    family = {"sgd": "SGD", "adam": "Adam and AdamW"}[str(training.family)]
    count = chosen["trainings"]
    if chosen["recipe"] == similar.LEAVE:
        return Notice("note", "leave", f"With {family} a BatchNorm and T did not gain beyond noise ({count} trainings).")  # fmt: skip
    kind = "fine-tunings" if training.scenario == "finetune" else "trainings"
    kind += " at a tuned rate" if training.tuned else ""
    text = (
        f"Over all {count} {kind} with {family} it gained {chosen['gain']:+.1f} points on average, no training counted "
        f"with more than {similar.MOST:g} (95 % interval {chosen['low']:+.1f} to {chosen['high']:+.1f})."
    )
    if chosen["recipe"] in similar.RATES:
        text += " If your rate and weight decay are tuned for this model, pass tuned=True: both then stay."
    return Notice("note", "gain", text)


def _speed(
    model: nn.Module, head: Head, per_rate: float, batch: Any, norm: Norm | None
) -> Iterator[Notice]:
    """How fast SGD would train the backbone next to the plain model, measured where there is a batch to do it on.

    ``per_rate`` is the factor on the learning rate over T.
    """
    try:
        speed = per_rate / matched_backbone(model, head, batch, norm)
    except TstarError:  # too few samples, or a head that passes no gradient
        return
    if not 1 / FAR <= speed <= FAR:
        yield Notice(
            "caution",
            "backbone-speed",
            f"With this recipe the backbone learns {speed:.2g} times as fast as in your plain model. temper(..., "
            'backbone="matched", example_input=batch) keeps its speed, which gained less in the atlas.',
        )


def _told(data: Any, source: Source | None, training: Keywords, head: Head) -> Training:
    """How one trains, the length and the batch size of the data counted in where they are needed and known.

    An epoch has as many steps as a DataLoader has batches: its sampler may draw more or fewer samples than there are.
    """
    known: dict[str, Any] = dict(training)
    held = (data, getattr(data, "batch_sampler", None))  # of a DataLoader, whose size may be None
    sizes = [getattr(one, "batch_size", None) for one in held]
    size = next((one for one in sizes if one is not None), None)
    if size is not None and known.get("batch_size") is None:
        known["batch_size"] = size
    counted = known.get("epochs") is not None and known.get("steps") is None
    if counted and source is not None and known.get("samples") is None:
        batches = batch_count(data)
        # Another batch size than the loader's is that of several loaders together, or of several batches per step.
        if batches is not None and size in (None, known.get("batch_size")):
            known["steps"] = steps_in(known["epochs"], batches)
        else:
            known["samples"] = source.samples
    return Training.of(**known, layer=head.layer)


def _held(optimizer: Any, head: Head) -> Container[int] | None:
    """The ids of what an optimizer object trains; ``None`` where the output layer is not among it, as with copies of it."""
    groups = getattr(unwrapped(optimizer), "param_groups", ())
    held = {id(p) for group in groups for p in group["params"]}
    return held if any(id(p) in held for p in head.layer.parameters()) else None


def _network(head: Head, follows: str | None) -> Iterator[Notice]:
    """What is known to go wrong with this kind of network, or will matter later."""
    if follows:
        yield Notice(
            "note",
            "already-normed",
            f"The output layer already follows a BatchNorm ({follows!r}), so no second one is inserted.",
        )
    if getattr(head.layer, "bias", None) is None and not follows:
        yield Notice(
            "note",
            "no-bias",
            "The output layer has no bias, which the norm's shift needs at the end: fold(model, allow_bias=True) will "
            "add one.",
        )


def _own_scale(head: Head) -> Iterator[Notice]:
    """Logits that the model multiplies or divides already; a sum that is divided is a mean."""
    if SCALES & {*head.passed} and "sum" not in head.passed:
        yield Notice(
            "warning",
            "own-scale",
            f"The model itself multiplies or divides the output of {head.path!r}. If that is a scale or a temperature, T comes "
            "on top of it: remove one of the two.",
        )


def _reshaped(model: nn.Module, head: Head, example_input: Any) -> Iterator[Notice]:
    """An output without an axis of K classes, seen in a run where the model reshapes what its output layer gives."""
    if not RESHAPES & {*head.passed}:
        return
    K, outputs = head.num_classes, list[Any]()
    examples = cheap_inputs(model) if example_input is None else iter([example_input])
    run_once(
        model,
        examples,
        lambda: [model.register_forward_hook(lambda *run: outputs.append(run[-1]))],
    )
    shapes = [tuple(tensor.shape[1:]) for output in outputs for tensor in tensors_in(output)]
    if shapes and not any(K in shape for shape in shapes):
        yield Notice(
            "warning",
            "reshaped",
            f"The model reshapes the {K} outputs of {head.path!r} to {shapes[0]}, so that K may not be {K}. Pass num_classes=…, "
            "the number of classes in one softmax.",
        )


def _measure(data: Source, num_classes: int, extra: list[Notice]) -> float | None:
    """csg of the data; a notice in place of a number where it cannot be computed."""
    from tstar.difficulty import csg

    try:
        return float(csg(data, limit=max(_MEASURED, 50 * num_classes)))
    except TstarError as error:
        message = f"The difficulty of the data could not be measured: {error}"
        extra.append(Notice("caution", "csg-failed", message))
        return None


def _class_count(data: Source, num_classes: int) -> Iterator[Notice]:
    """Whether the data have other classes than the model, where that is known without reading samples."""
    count = count_classes(data)
    if count and count != num_classes:
        yield Notice(
            "warning",
            "class-count",
            f"The data have {count} classes and the output layer {num_classes}; T* uses {num_classes}. "
            "Build the model with the number of classes of the data.",
        )


__all__ = ["Recommendation", "recommend"]
