"""recommend: a case in, its row of the table and the numbers that follow out; print and apply them.

``case.py`` reads model, data and training; ``recipes.py`` has the table. Here a row becomes numbers
for one case. The surgery is done by ``surgery.py``, the rates are set by ``groups.py``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from tstar.case import Case, read_case
from tstar.errors import TstarError, guarded, read_json, warn
from tstar.formula import explain
from tstar.groups import live_optimizer, set_rate
from tstar.head import replaced
from tstar.law import law_temperature
from tstar.output_layer import resolve_heads, tempered_heads, unwrap
from tstar.recipes import Row, find_row, rows
from tstar.samples import count_classes
from tstar.surgery import temper
from tstar.task import check_task
from tstar.text import ShownAsText
from tstar.training import Training, schedulers_in

LARGE_T = 8.0  # above it the confidences that folding keeps were seen to be far off
SMALL_BATCH, FEW, FAR = 8, 20, 10  # samples, trainings, times the rate
_SOFT = ("SoftTargetCrossEntropy", "KLDivLoss", "kl_div")
_NUMBERS = ("temperature", "norm", "lr")


@guarded("recommend() failed while reading your model or data")
def recommend(
    model: nn.Module,
    data: Any = None,
    *,
    num_classes: int | None = None,
    loss: Any = None,
    head: Any = None,
    example_input: Any = None,
    **training: Any,
) -> Recommendation:
    """Which recipe suits this way of training: a row of the table, as numbers for this model.

    It changes nothing: it reads two samples, and runs a copy of the model on them. It assumes usual
    values for the rest, and the advice says so.

    Args:
        model: the classifier; M and K are read from its output layer.
        data: the training set or its loader, in any form that :func:`tstar.csg` takes. Its length
            counts the steps of ``epochs``.
        num_classes: K, if the output layer will be replaced later.
        loss: the loss that you train with; refused unless a softmax follows the logits.
        head: the output layer's path, or several, if the model has several.
        example_input: an input that the model accepts, if there are no data.
        training: how you train, in the keywords of :meth:`tstar.training.Training.of`: optimizer,
            lr, momentum, weight_decay, batch_size, steps, epochs, samples, schedule,
            label_smoothing, scenario, tuned, args, accumulate, scheduler.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    >>> advice = recommend(net, optimizer="adamw", lr=0.001, steps=800, batch_size=128)
    >>> advice.norm, advice.lr
    (None, 0.003)
    """
    smoothing = getattr(loss, "label_smoothing", getattr(loss, "smoothing", None))
    smoothing = smoothing or getattr(loss, "keywords", {}).get("label_smoothing")
    training["label_smoothing"] = training.get("label_smoothing") or smoothing
    case, heads = read_case(
        model, data, num_classes=num_classes, head=head, example_input=example_input, **training
    )
    check_task(unwrap(model), heads, loss)
    notes = []
    sizes = [each.num_classes for each in heads]
    if len({*sizes}) > 1:
        notes.append(f"the heads have {sizes} classes; rate and T are for the first one.")
    count = None if data is None else count_classes(data)
    if count not in (None, case.num_classes):
        notes.append(f"the data have {count} classes, the output layer {case.num_classes}.")
    if getattr(loss, "__name__", type(loss).__name__) in _SOFT:
        notes.append("soft targets (mixup, distillation): only hard labels were measured.")
    live = hasattr(training.get("optimizer"), "step")
    tempered = {head.layer: path for path, head in tempered_heads(unwrap(model)).items()}
    paths = tuple(tempered.get(each.layer, each.path) for each in heads)
    return advise(case, find_row(case), notes, heads=paths, live=live)


def advise(case: Case, row: Row, notes: Sequence[str] = (), **more: Any) -> Recommendation:
    """A row as numbers for one case."""
    lr, notes = case.training.lr, list(notes)
    if row.rate is not None:
        lr = max(lr or 0.0, round(row.rate * case.usual_lr, 12))  # 0.3, not 0.3 + 4e-17
    M, K, T = case.num_features, case.num_classes, case.temperature or 1.0
    if row.temperature == "law":
        T = law_temperature(M, K, replace(case.training, lr=lr))
    elif row.temperature == "cn":
        paper = explain(M, K)
        T, notes = paper.temperature, [*notes, *paper.notes]
    elif row.temperature is not None:
        T = float(row.temperature)
    norm = row.norm if row.surgery else case.norm
    numbers: dict[str, Any] = {"temperature": T, "norm": norm, "lr": lr, "notes": tuple(notes)}
    return Recommendation(case=case, row=row, **numbers, **more)


@dataclass(frozen=True, kw_only=True, repr=False)
class Recommendation(ShownAsText):
    """A row of the table as numbers for one model.

    ``print(advice)`` says it in four lines, ``advice.details()`` in more. ``lr``, ``temperature``
    and ``norm`` ("batch": before the output layer) are there to use.
    """

    case: Case
    row: Row
    heads: tuple[str, ...]  # paths of the output layers
    temperature: float = 1.0
    norm: str | None = None
    lr: float | None = None
    notes: tuple[str, ...] = ()
    live: bool = False  # an optimizer object was given to ``recommend``

    @property
    def training(self) -> Training:
        """How you train, with what is usual for what is not known; the rate to use is ``lr``."""
        return self.case.training

    @property
    def surgery(self) -> bool:
        """Whether the model itself changes; if not, the rate may."""
        return self.norm != self.case.norm or self._divides

    @property
    def _divides(self) -> bool:
        """Whether T differs from the one that the model has, in single precision."""
        return not math.isclose(self.temperature, self.case.temperature or 1.0, rel_tol=1e-6)

    @property
    def leave(self) -> bool:
        """Whether there is nothing to change: so says the table, or all is done."""
        return not self.surgery and self.lr == self.training.lr

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name)!r}" for name in _NUMBERS)
        return f"Recommendation({self.row.name!r}, {numbers})"

    def __str__(self) -> str:
        lines = {
            "Do this": self._do(),
            "Expect": self._expect(),
            "Main risk": next(self._risks()),
            "Check": "tstar.lab.check(make_model, data, advice) trains both ways and compares them.",
        }
        return "\n".join(f"{name}: {text}" for name, text in lines.items())

    def details(self) -> str:
        """The row, the case, and every risk."""
        case, t = self.case, self.training
        model = f"{case.kind}, {case.norms.replace('-', ' ')}"
        lines = [
            f"Row of the table: {self.row.name}. {self.row.do}",
            f"Measured on: {self.row.source}." if self.row.source else "",
            f"Widened heads: {self.row.widened}." if self.row.widened else "",
            f"Your model: {model}; M = {case.num_features}, K = {case.num_classes}.",
            f"Your training: {', '.join(f'{n} {v}' for n, v in t.to_dict().items())}.",
            f"Assumed, since you did not pass them: {', '.join(sorted(case.assumed)) or 'nothing'}.",
            *(f"Risk: {risk}" for risk in self._risks()),
        ]
        return "\n".join(filter(None, lines))

    def _do(self) -> str:
        if not self.row.known:
            return "leave the model as it is; we have no measurements for this way of training."
        if self.leave:
            return "nothing more; your training is as advised." if self.row.changes else self.row.do
        what = []
        if self.norm != self.case.norm:
            where = ", ".join(map(repr, self.heads))
            verb = "insert a" if self.norm else "remove the"
            what.append(f"{verb} BatchNorm before {where}")
        if self._divides:
            T, old = f"{self.temperature:.4g}", self.case.temperature
            new = f"divide the logits by T = {T}"
            what.append(new if old is None else f"set T to {T} (in place of {old:.4g})")
        if self.lr != self.training.lr:
            what.append(f"set lr to {self.lr:g} (in place of {self.training.lr:g})")
        return f"{', '.join(what)}: model = advice.apply(model, optimizer)"

    def _expect(self) -> str:
        if not self.row.known:
            return "not known: we measured too few trainings like it."
        if self.leave:
            why = "your training is as advised" if self.row.changes else "no recipe gained here"
            return f"no change: {why}."
        gain = self.row.native or self.row.widened
        return f"{gain} over the plain model as you train it."

    def _risks(self) -> Iterator[str]:
        """What to be careful about, the gravest first; there is always one."""
        case, t = self.case, self.training
        batch = case.batch or t.batch_size or SMALL_BATCH
        yield from self.notes
        if case.dense and not self.leave:
            yield "a label for each pixel or token: only one label per sample was measured."
        if self.norm and batch < SMALL_BATCH:
            yield f"batches of {batch} samples give the BatchNorm noisy statistics."
        if self.temperature != 1 and t.label_smoothing:
            yield "label smoothing: with T it lost part of the gain in the paper, though not in our runs."
        if not self.leave:
            if t.lr and self.lr and self.lr > FAR * t.lr:
                yield f"the rate: {self.lr / t.lr:.0f} times yours; we measured up to {FAR} times."
            if case.kind == "transformer" and t.family == "sgd":
                yield "transformers with SGD: in the paper a high rate made ViT-B/16 fail."
            if self.row.native and self.row.native.n < FEW:
                yield f"few measurements: {self.row.source}."
        if self.surgery and self.temperature > LARGE_T:
            yield (
                f"confidences: folding keeps those of T = {self.temperature:.3g}, which can be far "
                "too low; calibrate afterwards, tstar.lab.methods.calibrate(model, data)."
            )
        if case.assumed:
            names = (f"{n} = {getattr(t, n)}" for n in sorted(case.assumed))
            yield f"this assumes {', '.join(names)}; pass yours to recommend if it differs."
        if not self.row.known:
            yield "a missed gain: only a comparison on your own model can tell."
        elif self.norm:
            yield "batches that are not shuffled: the BatchNorm needs several classes in each."
        elif not self.leave:
            yield "another rate can fail; a seed alone moves accuracy by a point or two."
        else:
            yield "none: nothing changes."

    # -- keep --------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """The advice as plain JSON types."""
        data = asdict(self)
        data["case"]["assumed"] = sorted(self.case.assumed)
        return {"text": str(self).splitlines(), **data}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the advice as JSON, which :meth:`load` reads."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recommendation:
        """Read an advice that :meth:`save` wrote."""
        data = read_json(path, "an advice, as advice.save() writes it")
        with guarded(f"{os.fspath(path)!r} must be an advice, as advice.save() writes it"):
            case = dict(data["case"])
            training, assumed = Training(**case.pop("training")), frozenset(case.pop("assumed"))
            row = next((row for row in rows() if row.name == data["row"]["name"]), None)
            if row is None:
                raise TstarError(f"this version's table has no row {data['row']['name']!r}")
            known: dict[str, Any] = {n: tuple(data[n]) for n in ("heads", "notes")}
            known |= {n: data[n] for n in (*_NUMBERS, "live")}
            advice = cls(case=Case(**case, training=training, assumed=assumed), row=row, **known)
            str(advice), advice.details()  # a wrong value is refused here, not when it is printed
            return advice

    # -- apply -------------------------------------------------------------------------------------
    @guarded("apply() failed in your model or optimizer")
    def apply(
        self, model: nn.Module, optimizer: Any = None, scheduler: Any = None, **options: Any
    ) -> nn.Module:
        """The model as advised, changed in place, and the optimizer at the advised rate.

        Args:
            model: the model that the advice is for. If it is tempered already, its T is set.
            optimizer: a torch optimizer that holds its parameters. The new norm joins the group of
                the output layer, and every group keeps its ratio to the others. Without one the
                surgery alone is done: build your optimizer with ``advice.lr``.
            scheduler: of that optimizer, or a list, so that it goes on from the new rate.
            options: of :func:`tstar.temper`.
        """
        if optimizer is not None and self.row.changes:  # refused before anything changes
            modules = [m for path, m in unwrap(model).named_modules() if path in self.heads]
            live_optimizer(optimizer, [getattr(m, "layer", m) for m in modules])
            schedulers_in(scheduler)
        if self.row.surgery:
            model = self._operate(model, optimizer, options)
        if self.row.rate is None or self.lr is None:
            return model
        if optimizer is not None:
            layers = [unwrap(model).get_submodule(path) for path in self.heads]
            set_rate(optimizer, layers, self.lr, scheduler)
        elif self.live and not self.leave:
            warn("The advice changes the learning rate: call advice.apply(model, optimizer).")
        return model

    def _operate(self, model: nn.Module, optimizer: Any, options: dict[str, Any]) -> nn.Module:
        """Norm and T as advised; a head that is tempered already gets this T."""
        every = tempered_heads(unwrap(model))
        heads = [every[path] for path in self.heads if path in every]
        fitting = [head for head in heads if (head.norm is None) == (self.norm is None)]
        if len(fitting) == len(self.heads):
            for head in fitting:
                head.set_temperature(self.temperature)
            return model
        for head in heads:
            replaced(model, head, head.layer)
        M, K = self.case.num_features, self.case.num_classes
        known = {"inplace": True, "steps": self.training.steps, "norm": self.norm, **options}
        try:
            records = resolve_heads(model, self.heads, options.get("example_input"))
            if (records[0].num_features, records[0].num_classes) != (M, K):
                warn(
                    f"The advice is for M = {M}, K = {K}, but it is applied to {records[0]}; call "
                    "tstar.recommend for this model."
                )
            return temper(model, self.temperature, head=records, optimizer=optimizer, **known)
        except Exception:
            for head in heads:  # what is refused stays as it was
                replaced(model, head.layer, head)
            raise
